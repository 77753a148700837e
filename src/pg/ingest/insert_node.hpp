// The plan node that inserts rows in batches. It stands above the node that inserts them one by
// one, and either does its work or lets it do it.
#pragma once

extern "C" {
#include "nodes/plannodes.h"
}

namespace streamfilter::pg {

// The node above the other, for a query with so many calls of streamfilter_seen(). `obstacle` says
// why the rows have to come one by one, nullptr: nothing that the planner can see.
Plan* make_insert_node(ModifyTable* insert, int calls, const char* obstacle);

// Registers the node; called by init_batch_insert.
void init_insert_node();

}  // namespace streamfilter::pg
