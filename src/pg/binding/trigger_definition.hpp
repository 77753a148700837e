// Reads a trigger's definition: which filter, which columns. Finds every mistake in it, both when
// the trigger is created and when it fires.
#pragma once

#include "pg/binding/trigger_binding.hpp"
#include "pg/handle/key_builder.hpp"

namespace streamfilter::pg {

// The table that CREATE TRIGGER named: for a partition, the table whose trigger was cloned. Its
// owner needs the rights, and its schema is the first to look up filters in.
struct DeclaredTrigger {
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
DeclaredTrigger find_declared(const Trigger* trigger, Relation table);

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
Oid lock_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared,
                LOCKMODE lockmode, int missing_right);

// Finds the filter without a lock; InvalidOid: there is no such filter.
Oid find_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared);

// Matches columns of table and filter. Raises 39P01 for a wrong number of arguments, and 42703,
// 42804, 42P17.
TriggerPlan* make_plan(const Trigger* trigger, TriggerKind kind, Relation table,
                       const FilterRelation* filter);

// A column's name before and after RENAME COLUMN.
struct NewName {
  const char* former;
  const char* name;
};

// The arguments, as char*, with which the trigger uses the same columns as before the table's
// column got a new name: also one that names none, as it takes those of the filter's names. NIL:
// the arguments that it has.
List* arguments_with_column(const Trigger* trigger, TriggerKind kind, Relation table,
                            const FilterRelation* filter, NewName column);

// Rights that a table's owner needs on the filter of its trigger, and on the table that it diverts
// repeats to. A trigger whose owner lacks them blocks no DDL.

// Needed rights on the filter; `type` is pg_trigger.tgtype.
AclMode needed_rights(int16 type, TriggerKind kind);

// Has the owner these rights on the relation, and USAGE on its schema?
bool has_rights(Oid relation, Oid owner, AclMode rights);

// The owner of a trigger's table, and the table's quoted name.
struct TableOwner {
  Oid role;
  const char* table_name;
};

// False, with 42501 reported at this level, unless the owner has the rights.
bool check_rights(Oid relation, TableOwner owner, AclMode rights, int level);

// Has the owner of the trigger's table all rights that the trigger needs?
bool has_all_rights(const TriggerRow* row, TriggerKind kind);

// Does the relation's owner own the table, too, directly or as a member of the owning role? DDL on
// the relation waits for such tables, and may fail because of them.
bool owns_both(Oid relation, Oid table);

}  // namespace streamfilter::pg
