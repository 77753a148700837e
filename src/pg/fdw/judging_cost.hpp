// Costs of streamfilter_seen(). It is declared to cost a hundred times its real cost, so that all
// other conditions are evaluated before: rows that they remove must not be remembered. This would
// make paths with correctly ordered conditions far too expensive, and get their queries compiled
// for nothing.
#pragma once

extern "C" {
#include "nodes/pathnodes.h"
}

namespace streamfilter::pg {

// For a path of a base relation, before it becomes a plan: declared minus real cost of the calls
// among its conditions; 0 if there are none.
Cost excess_cost(PlannerInfo* root, const RelOptInfo* rel, const Path* path);

// Subtracts that from all paths.
void take_back_excess(PlannerInfo* root, RelOptInfo* rel);

// Number of rows that pass all other conditions.
double rows_before(PlannerInfo* root, const RelOptInfo* rel, RestrictInfo* condition);

}  // namespace streamfilter::pg
