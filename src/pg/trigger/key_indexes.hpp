// Unique indexes of a table with a judging trigger. An index that includes all columns of the key
// refuses only rows whose key is in the table, which the filter may remember, too.
#pragma once

#include "pg/binding/trigger_definition.hpp"

namespace streamfilter::pg {

// OIDs of indexes that refuse only rows whose key is in the table.
List* find_key_indexes(Relation table, const TriggerPlan* plan);

// Can INSERT … ON CONFLICT into this target refuse a row whose key is not in the table?
bool may_refuse_new_keys(const ResultRelInfo* target, const TriggerPlan* plan);

// Is the row in one of these indexes? Waits for a transaction that has inserted or deleted it.
bool is_in_indexes(const List* indexes, Relation table, TupleTableSlot* row);

// For a filter before a unique index: a NOTICE that says what to type. Raises 42P17 if the trigger
// is to look into such an index, but the table has none.
void check_key_indexes(const Trigger* trigger, TriggerKind kind, Relation table,
                       const TriggerPlan* plan, const FilterRelation* filter);

}  // namespace streamfilter::pg
