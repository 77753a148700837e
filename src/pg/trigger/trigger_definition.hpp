// What a trigger of ours is meant to do, by its definition: which filter, which columns. Everything
// that can be wrong with that is found here, when the trigger is created as well as when it fires.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "utils/rel.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/trigger/trigger_binding.hpp"
#include "pg/trigger/trigger_kind.hpp"

namespace streamfilter::pg {

// The table that CREATE TRIGGER named: for a partition, the one its trigger was cloned from. Its
// owner answers for the trigger, and its schema is where filters are looked up first.
struct TriggerOrigin {
  Oid trigger;
  TriggerBinding binding;  // without a filter: to none yet
  Oid table;
  Oid schema;
  Oid owner;
  const char* table_name;  // quoted and with its schema, for statements in hints
  Oid function_schema;
};

struct TriggerPlan {
  AttrNumber mark;  // the column to set; 0: repeats are discarded
  int count;        // columns of the filter, in order
  KeyInput* inputs;
  bool skips_conflicts;  // rows that a unique index on the key has are not inserted
};

// Raises 39P01: the trigger is not what these functions are made for.
[[noreturn]] void raise_wrong_event(const Trigger* trigger, TriggerKind kind, Relation table);

// The answers live in the current memory context. The caller holds a lock on the table.
TriggerOrigin find_origin(const Trigger* trigger, Relation table);

// A name in an argument, as SQL reads it. Raises 42602, which says what it should be the name of.
void parse_name(const char* text, const char* what, const char* example, char** schema,
                char** name);

// A column by its exact name; InvalidAttrNumber: there is none.
AttrNumber find_exactly(Relation table, const char* name);

// The filter that the trigger is bound to, or else the one that its first argument names, locked
// until the end of the transaction. Raises 39P01 without such an argument, 42602, 42P01, 42809;
// reports 42501 at level `missing_right` unless the owner of the table has the needed rights:
// InvalidOid then, and nothing is locked.
Oid lock_filter(const Trigger* trigger, TriggerKind kind, const TriggerOrigin* origin,
                LOCKMODE lockmode, int missing_right);

// The same without a lock; InvalidOid: there is no such filter.
Oid find_filter(const Trigger* trigger, TriggerKind kind, const TriggerOrigin* origin);

// Reports 42P17 at this level if a trigger that fires after this one could drop the row.
void check_is_last(const Trigger* trigger, Relation table, int level);

// Matches columns of table and filter. Raises 39P01 for a wrong number of arguments, 42703, 42804,
// 42P17.
TriggerPlan* make_plan(const Trigger* trigger, TriggerKind kind, Relation table,
                       const FilterRelation* filter);

}  // namespace streamfilter::pg
