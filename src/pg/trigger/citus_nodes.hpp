// Nodes of Citus beside this one: statements about filters are sent to them, and settings that do
// not reach them are an error.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Does this session speak for all nodes? False within connections that Citus has opened, and with
// citus.enable_ddl_propagation off: statements act here only then.
bool speaks_for_all_nodes();

// Has streamfilter_distribute() made the filter on all nodes?
bool is_on_all_nodes(Oid filter);

// Has another node a filter of this name? It may have been made there by a version before 1.2, or
// by hand.
bool is_on_other_nodes(Oid filter, const char* full_name);

// Runs a command on all nodes but this one, as the current user, in the same distributed
// transaction. Where a node has no foreign table of that name, it does nothing there.
void run_on_other_nodes(const char* relation, const char* command);

// Raises 0A000 if the filter is on several nodes, and what is called acts on one; `command` is what
// to send to the others. Within shards of this node, which the coordinator may ask without a
// connection, it is a NOTICE if `may_be_shard`.
void require_one_node(Oid filter, const char* what, const char* command, bool may_be_shard);

// A step before queries and COPY: raises 0A000 if the nodes that hold a table with triggers of ours
// do not have this session's streamfilter.mode and streamfilter.enabled.
void check_settings_reach(RunCall* call);
void check_settings_reach(Oid table);

}  // namespace streamfilter::pg
