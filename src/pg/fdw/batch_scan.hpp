// A plan node for `… WHERE NOT streamfilter_seen('filter', key…)` above a table scan: reads rows
// ahead. Same result, less waiting for memory and for other servers.
#pragma once

namespace streamfilter::pg {

// Keys may be asked for before their rows if all rows are read and no code looks at the filter in
// between.
struct AheadRule {
  bool (*holds)(const ModifyTableState* insert);  // called when it matters
  const ModifyTableState* insert;
  bool is_answered = false;  // it was called; if it does not hold, it is nullptr now
};

// For a plan whose rows are read to their end: lets its batch scans follow the rule.
void ask_ahead(PlanState* plan, const AheadRule& rule);

// The state of the node in the executor.
Node* create_batch_scan_state(CustomScan* plan);

}  // namespace streamfilter::pg
