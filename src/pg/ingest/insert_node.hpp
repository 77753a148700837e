// The plan node that inserts rows in batches. It stands above ModifyTable, which inserts them one
// by one, and either replaces it or lets it run.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Puts the node above `insert`, for a query with this number of calls of streamfilter_seen().
// `obstacle` says why rows must go one by one; nullptr: the planner sees no reason.
Plan* make_insert_node(ModifyTable* insert, int calls, const char* obstacle);

// Registers the node; called by init_batch_insert.
void init_insert_node();

// Which INSERTs are planned with a node that inserts in batches.

PlannedStmt* plan_insert(PlannerCall* call);

}  // namespace streamfilter::pg
