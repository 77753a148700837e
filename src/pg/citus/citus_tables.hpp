// Triggers on tables of Citus need the filter on every node, and rows that reach the node of their
// key.
#pragma once

#include "pg/binding/trigger_definition.hpp"

namespace streamfilter::pg {

// Is Citus installed in this database, so that its functions and tables can be asked?
bool has_citus();

// The number of this node, another one whenever Citus adds it; nullptr: of a coordinator, which
// knows all filters.
const char* worker_group();

// Call after CREATE TRIGGER on a node: makes the filter as on the coordinator, unless it exists.
// One that was made before this node was removed and added again is made anew.
void import_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared);

// Is it one of Citus's tables, which has its rows in shards?
bool is_distributed(Oid table);

// Option identity of a filter that streamfilter_distribute() has made: "filter@group".
struct Identity {
  const char* filter;  // for which filter of the coordinator; nullptr: without the option
  const char* group;   // on which node; nullptr: the coordinator's filter itself
};
Identity read_identity(const char* option);

// What a worker runs to mark its filter as the one of this identity, made in the worker's present
// life. A filter of an earlier life is emptied.
const char* identity_command(const char* name, const char* identity);

// Raises 0A000 for a reference table, because each copy would be judged by another filter; warns if
// equal keys may go to different nodes.
void check_distribution(const Trigger* trigger, TriggerKind kind, Relation table);

// If this is the trigger that Citus adds to a table it takes over, checks all our triggers of that
// table.
void check_taken_over(Oid trigger);

// Rows of an SPI query as a list of char*, NULLs as nullptr, in the caller's memory.
List* query_rows(const char* query, Oid type, Datum argument);
inline const char* text_at(const List* row, int column) {
  return static_cast<const char*>(list_nth(row, column));
}

}  // namespace streamfilter::pg
