// A plan node for `… WHERE NOT streamfilter_seen('filter', key…)` over the scan of a table: it
// reads rows ahead and gets the memory of their keys on its way, then tests and inserts
// them one by one as they are asked for. Same result as without it, less waiting for memory.
#pragma once

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
}

namespace streamfilter::pg {

// Is it a call of streamfilter_seen()?
bool is_seen_call(const FuncExpr* call);

// The call if the condition is NOT streamfilter_seen(constant filter, values…), else nullptr.
FuncExpr* find_seen_call(Expr* condition);

// The filter that the plan node asks, as the call's first argument; nullptr if it is another node.
const Const* filter_of_batch_scan(const Plan* plan);

// The state of the node in the executor.
Node* create_batch_scan_state(CustomScan* plan);

// Whoever runs this node, if it is one of ours, is going to ask for all its rows, and nothing that
// happens in between looks at the filter or the rows' way: they are judged a batch at a time.
void judge_ahead(PlanState* node);

// Registers hook and node. Called by _PG_init when preloaded.
void init_batch_scan();

}  // namespace streamfilter::pg
