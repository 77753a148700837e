// The other nodes of Citus: sends them statements about filters, and raises an error where a
// setting does not reach them.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Does this session speak for all nodes? False within connections that Citus has opened, and with
// citus.enable_ddl_propagation off: statements act here only then.
bool speaks_for_all_nodes();

// Has streamfilter_distribute() made the filter on all nodes?
bool is_on_all_nodes(Oid filter);

// Has another node a filter of this name, made by hand?
bool is_on_other_nodes(Oid filter, const char* full_name);

// Runs a command on all other nodes, as the current user, in the same distributed transaction. A
// node skips it where the condition is false.
void run_on_other_nodes(const char* condition, const char* command);

// The condition that a node has a foreign table of that name.
const char* has_filter(const char* full_name);

// Is a statement about the filter meant for all nodes?
bool acts_on_all_nodes(Oid filter);

// Runs a CALL on all nodes, one after the other, in transactions of their own. Raises 55000 if a
// node fails, after all of them.
void call_on_all_nodes(Oid filter, const char* command);

// Raises 0A000 if the filter is on several nodes but the statement acts on one; `command` is the
// text to send to the others. With `may_be_shard` only a NOTICE: the coordinator may call this
// within its own shards, without a connection.
void require_one_node(Oid filter, const char* what, const char* command, bool may_be_shard);

// The same for a function about keys: acts on a node for its shards.
void require_shard_node(Oid filter, const char* function);

// Before queries and COPY: raises 0A000 if the nodes that hold a table with our triggers do
// not get this session's streamfilter.mode and streamfilter.enabled.
void check_settings_reach(const QueryDesc* query);
void check_settings_reach(Oid table);

}  // namespace streamfilter::pg
