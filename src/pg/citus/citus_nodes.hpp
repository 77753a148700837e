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

// Runs a command on all other nodes, as the current user, in the same distributed transaction. A
// node skips it where the condition is false.
void run_on_other_nodes(const char* condition, const char* command);

// The condition that a node has a foreign table of that name.
const char* has_filter(const char* full_name);

// The life that all nodes' filters of one distributed filter share: a random number, and the
// coordinator's OID, so that a dump brings none. Option identity has it. Statements that mean to
// begin anew draw another one for all nodes: TRUNCATE, ALTER of options and the first
// streamfilter_distribute(). A statement is carried out only where the life is the sender's, so a
// node that was restored from an older backup is noticed. How a node's filter lives by itself
// (pg/storage/saved_definition.hpp) is nothing to the others.
const char* draw_life(Oid filter);
void write_life(Oid filter, const char* life);
// On the coordinator; nullptr: the filter has none, or one of another filter.
const char* own_life(Oid filter);

// In PL/pgSQL, on a node that has the filter. With `former`: raises 55000 unless that is its life,
// and makes it one of `life`, unless that is nullptr; with both equal, also one that was made by
// hand and has no life. Without `former`: drops one of another life than `life`, or raises if
// tables use it. With neither: closes its gate.
const char* node_call(const char* full_name, const char* former, const char* life);

// Does the current user own the filter, or have the right to TRUNCATE it?
bool may_empty(Oid filter);

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

// Says so, once a session, if a view shows of this filter what is on this node.
void say_shows_one_node(Oid filter);

// ---- gates -------------------------------------------------------------------------------------

// The gate of a filter on all nodes of Citus, which keeps statements about it from deadlocks with
// writers.
//
// A writer's rows reach the filters of several nodes in parallel, in any order, so a statement that
// locks the filter on one node after the other would meet writers that have one and want the next:
// no order of its own helps. Therefore a writer takes a lock at its own node (its origin: where the
// client's session is) before its first shard, in RowExclusiveLock, and such a statement takes it
// on all nodes in AccessExclusiveLock before anything else. Once it has the gates, every
// transaction that has touched the filter from any origin has ended, and later ones hold no lock of
// it anywhere. ALTER TABLE of Citus does the same by locking the table on all nodes.
//
// Not kept apart: two such statements sent by two nodes; a transaction that fills tables of two
// filters against one that changes both; one that calls streamfilter_seen() before it writes.
//
// It is a lock on the relation as a database object, which PostgreSQL itself locks otherwise: both
// deadlock detectors see it, PREPARE keeps it, the end of the transaction frees it.
void lock_gate(Oid filter, LOCKMODE mode);

// What a node runs to close its gate, waiting no longer than this session would.
const char* close_gate_call(const char* full_name);

// Call before a query or COPY writes rows: takes the gates of the filters that triggers of its
// tables use. Raises 0A000 if the nodes that hold a table with our triggers do not get this
// session's streamfilter.mode and streamfilter.enabled.
void prepare_to_write(Oid table);
void prepare_to_write(const QueryDesc* query);

}  // namespace streamfilter::pg
