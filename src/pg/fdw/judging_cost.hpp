// What streamfilter_seen() costs. It is declared to cost a hundred times more than it does, so that
// all other conditions are evaluated before: whatever they remove must not be remembered. Paths
// whose conditions are in order would be far too dear, and their queries be compiled for nothing.
#pragma once

extern "C" {
#include "nodes/pathnodes.h"
}

namespace streamfilter::pg {

// Of a path for a base relation, before it becomes a plan: what the calls among its conditions have
// been declared to cost and do not. 0 if there are none.
Cost excess_cost(PlannerInfo* root, const RelOptInfo* rel, const Path* path);

// Takes that back from all paths.
void take_back_excess(PlannerInfo* root, RelOptInfo* rel);

// How many rows pass all conditions but this one.
double rows_before(PlannerInfo* root, const RelOptInfo* rel, RestrictInfo* condition);

}  // namespace streamfilter::pg
