// Unique indexes of a table whose rows a filter judges. One that includes all columns of the key
// refuses only rows whose key is in the table: then the filter may let a row pass that is not
// inserted after all.
#pragma once

extern "C" {
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "utils/rel.h"
}

#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// Why a row that the index refuses may have a key that is not in the table; nullptr: it has not. A
// whole sentence, in the current memory context.
const char* why_not_of_key(Oid index, Relation table, const TriggerPlan* plan);

// Indexes that refuse only rows whose key is in the table, as a list of OIDs.
List* find_key_indexes(Relation table, const TriggerPlan* plan);

// Raises 0A000, with the reason, unless INSERT … ON CONFLICT DO NOTHING into this target may skip
// rows that were judged.
void check_conflict_target(const ResultRelInfo* target, const Trigger* trigger,
                           const TriggerPlan* plan);

// Has one of these indexes the row? Waits for a transaction that has inserted or deleted it.
bool is_in_indexes(const List* indexes, Relation table, TupleTableSlot* row);

// A filter before a unique index: says what to write.
void hint_at_key_index(const Trigger* trigger, Relation table, const TriggerPlan* plan,
                       const char* filter);

}  // namespace streamfilter::pg
