// A plan node for `… WHERE NOT streamfilter_seen('filter', key…)` above a table scan: reads rows
// ahead and prefetches the memory of their keys, then tests and inserts them one by one as they are
// asked for. Same result, less waiting for memory. If all rows go into a table, it asks other
// servers for many keys at once.
#pragma once

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"
}

namespace streamfilter::pg {

// Keys may be asked for before their rows if all rows are read and no code looks at the filter in
// between.
struct AheadRule {
  bool (*holds)(const ModifyTableState* insert);  // called when it matters
  const ModifyTableState* insert;
};

// For a plan whose rows are read to their end: lets its batch scans follow the rule.
void ask_ahead(PlanState* plan, const AheadRule& rule);

// The state of the node in the executor.
Node* create_batch_scan_state(CustomScan* plan);

}  // namespace streamfilter::pg
