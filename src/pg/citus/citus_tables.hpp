// Triggers on tables of Citus need the filter on every node, and rows that reach the node of their
// key.
#pragma once

#include "pg/binding/trigger_definition.hpp"

namespace streamfilter::pg {

// Is Citus installed in this database, so that its functions and tables can be asked?
bool has_citus();

// The number of this node, another one whenever Citus adds it; nullptr: of a coordinator.
const char* worker_group();

// Call after CREATE TRIGGER on a node: makes the filter as on the coordinator, unless it exists.
//
// When a node comes back that was disabled, drained or removed, nothing that its filters know
// counts: statements of meanwhile have not reached it, and Citus has dropped the shards that it
// had, or will. So a filter is made anew when its first table comes, unless the coordinator has
// this node among its active ones already, as when only metadata are sent again. Shards come after
// the tables, and teach it their rows (shard_triggers.hpp).
void import_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared);

// Is it one of Citus's tables, which has its rows in shards?
bool is_distributed(Oid table);

// Raises 0A000 for a reference table, because each copy would be judged by another filter; warns if
// shards have several copies, or if equal keys may go to different nodes.
void check_distribution(const Trigger* trigger, TriggerKind kind, Relation table);

// If this is the trigger that Citus adds to a table it takes over, checks all our triggers of that
// table.
void check_taken_over(Oid trigger);

// Executes SQL commands, as Citus would those of a client.
void execute_commands(const char* commands);

// Rows of an SPI query as a list of char*, NULLs as nullptr, in the caller's memory.
List* query_rows(const char* query, Oid type, Datum argument);
inline const char* text_at(const List* row, int column) {
  return static_cast<const char*>(list_nth(row, column));
}

}  // namespace streamfilter::pg
