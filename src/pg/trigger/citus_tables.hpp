// What tables of Citus need beside their triggers: the filter on every node, and rows that meet it.
#pragma once

extern "C" {
#include "utils/rel.h"
}

#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// Is there Citus in this database? Its functions and tables can be asked then.
bool has_citus();

// After CREATE TRIGGER on a node: makes the filter as the coordinator has it, unless it is there.
void import_filter(const Trigger* trigger, TriggerKind kind, const TriggerOrigin* origin);

// Raises 0A000 if the table is a reference table, whose copies would each be judged by another
// filter; warns if equal keys may go to different nodes.
void check_distribution(const Trigger* trigger, TriggerKind kind, Relation table);

// Is this the trigger that Citus gives a table which it takes over? If so, all of ours of that
// table are checked.
void check_taken_over(Oid trigger);

// The rows of a query by SPI as lists of char*; NULLs are nullptr. In the caller's memory.
List* query_rows(const char* query, Oid type, Datum argument);

}  // namespace streamfilter::pg
