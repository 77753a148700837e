// Reads a trigger's definition: which filter, which columns. Finds every mistake in it, both when
// the trigger is created and when it fires.
#pragma once

extern "C" {
#include "commands/trigger.h"
#include "utils/rel.h"
}

#include "pg/binding/trigger_binding.hpp"
#include "pg/binding/trigger_kind.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/handle/key_builder.hpp"

namespace streamfilter::pg {

// The table that CREATE TRIGGER named: for a partition, the table whose trigger was cloned. Its
// owner needs the rights, and its schema is the first to look up filters in.
struct TriggerOrigin {
  Oid trigger;
  TriggerBinding binding;  // no filter: not bound yet
  Oid table;
  Oid schema;
  Oid owner;
  const char* table_name;  // quoted, with its schema, for statements in hints
  Oid function_schema;
};

struct TriggerPlan {
  AttrNumber mark;  // the column to set; 0: the trigger sets none
  int count;        // number of the filter's columns, in order
  KeyInput* inputs;
  bool skips_conflicts;  // rows that a unique index on the key refuses are not inserted
};

// Raises 39P01 because the trigger's timing, level or event is wrong.
[[noreturn]] void raise_wrong_event(const Trigger* trigger, TriggerKind kind, Relation table);

// Results live in the current memory context. The caller holds a lock on the table. Raises 55000 if
// the running statement has dropped a trigger whose filter only the catalog tells.
TriggerOrigin find_origin(const Trigger* trigger, Relation table);

// Reads a name in an argument, as SQL does. Raises 42602; `what` says in the message what it should
// name.
void parse_name(const char* text, const char* what, const char* example, char** schema,
                char** name);

// A column by its exact name; InvalidAttrNumber if there is none.
AttrNumber find_exactly(Relation table, const char* name);

// The filter that the trigger is bound to, or else the one that its first argument names, locked
// until the end of the transaction. Raises 39P01 without such an argument, 42602, 42P01, 42809.
// Unless the owner of the table has the needed rights, reports 42501 at level `missing_right`; then
// returns InvalidOid and locks nothing.
Oid lock_filter(const Trigger* trigger, TriggerKind kind, const TriggerOrigin* origin,
                LOCKMODE lockmode, int missing_right);

// Finds the filter without a lock; InvalidOid: there is no such filter.
Oid find_filter(const Trigger* trigger, TriggerKind kind, const TriggerOrigin* origin);

// Reports 42P17 at this level if one of the triggers that fires later could drop the row.
void check_is_last(const Trigger* trigger, const TriggerDesc* triggers, Relation table, int level);

// Matches columns of table and filter. Raises 39P01 for a wrong number of arguments, and 42703,
// 42804, 42P17.
TriggerPlan* make_plan(const Trigger* trigger, TriggerKind kind, Relation table,
                       const FilterRelation* filter);

}  // namespace streamfilter::pg
