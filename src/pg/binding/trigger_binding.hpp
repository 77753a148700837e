// Binds a trigger to the filter that it was created for, and to the table that it diverts repeats
// to, whatever happens to names.
//
// The filter's OID is in pg_trigger.tgconstrrelid ("the table referenced"), which otherwise only
// foreign keys use; the OID of the table for repeats is in tgconstrindid. Dependencies keep DROP
// from leaving them dangling. The first two arguments are kept equal to the current names, with
// schema, because a dump contains nothing else. Clones in partitions have the binding of the
// trigger that CREATE TRIGGER made.
#pragma once

extern "C" {
#include "commands/trigger.h"
}

#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {

// Binding of a trigger.
struct TriggerBinding {
  Oid filter;  // InvalidOid: it is bound to none
  Oid target;  // for repeats; InvalidOid: it does not divert them
};

// The fields of pg_trigger that we need.
struct TriggerRow {
  Oid trigger;
  Oid parent;  // that it was cloned from; InvalidOid: it was not
  Oid table;
  Oid function;
  TriggerBinding binding;
  int16 type;    // pg_trigger.tgtype
  uint64 shard;  // of Citus, as the names of trigger and table say; 0: of none
};

// False: there is no such trigger.
bool read_trigger_row(Oid trigger, TriggerRow* row);

// Keeps others from dropping and binding the trigger, without waiting; false if another session has
// it.
bool lock_trigger_if_free(Oid trigger);

// The filter of the trigger or of the trigger that it was cloned from; InvalidOid if it is not
// bound.
Oid filter_of_trigger(const TriggerRow* row);

// Binds the trigger, which must not be a clone, or updates its names. The caller holds a lock on
// the trigger's table that keeps others from altering its triggers.
void bind_trigger(Oid trigger, TriggerBinding binding);

// Replaces the arguments (char*) of this trigger alone, clone or not. Needs the same lock.
void write_arguments(Oid trigger, const List* arguments);

// Makes the trigger and its clones fire whatever session_replication_role is. Needs the same lock.
void enable_always(Oid trigger);

// Binds a trigger while a statement fires it. Needed for triggers that no event trigger could see
// (pg_upgrade). If a lock is not free, the next statement binds it.
// Returns the binding, possibly that of another session that came first.
TriggerBinding bind_when_fired(Oid trigger, Oid table, TriggerBinding binding);

// Our triggers that are no clones, as TriggerRow*.
List* find_triggers();

// Triggers that divert repeats to the table, as TriggerRow*.
List* find_diverting_triggers(Oid target);

// Our triggers that use the relation as filter or as table for repeats.
List* find_triggers_using(Oid relation);

// Is the relation used by the trigger of a table that is no shard? A node of Citus that was away
// may keep shards that nobody needs any more: their triggers count only beside one of these.
bool is_used_by_tables(Oid relation);

// Raises 2BP01 if one of our triggers depends on the relation in a way that DROP does not see,
// unless its table is dropped, too.
void check_droppable(Oid relation, const List* dropped);

// Removes the binding until the trigger fires again, so that nothing depends on it.
void unbind_trigger(const TriggerRow* row);

// Do its arguments still have the former names of renamed or moved relations?
bool has_former_names(const TriggerRow* row);

// The extension's trigger functions.

enum class TriggerKind : uint8 { discard, mark, divert, forget };

inline const char* function_name(TriggerKind kind) {
  switch (kind) {
    case TriggerKind::discard: return "streamfilter_discard";
    case TriggerKind::mark: return "streamfilter_mark";
    case TriggerKind::divert: return "streamfilter_divert";
    case TriggerKind::forget: break;
  }
  return "streamfilter_forget";
}

// Does the function judge inserted rows?
inline bool judges(TriggerKind kind) { return kind != TriggerKind::forget; }

// The name as in view streamfilter_triggers.
inline const char* short_name(TriggerKind kind) {
  return function_name(kind) + strlen("streamfilter_");
}

// Is this one of our trigger functions? It may have another name in another schema.
inline bool find_kind(Oid function, TriggerKind* kind) {
  for (*kind = TriggerKind::discard; *kind <= TriggerKind::forget;
       *kind = static_cast<TriggerKind>(static_cast<int>(*kind) + 1))
    if (is_own_function(function, function_name(*kind))) return true;
  return false;
}

// Calls visit(trigger, kind) for a table's triggers that are ours.
template <typename Visit>
void visit_own_triggers(Relation table, Visit&& visit) {
  // A copy: catalog look-ups may rebuild the cache.
  const TriggerDesc* triggers = CopyTriggerDesc(table->trigdesc);
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i)
    if (TriggerKind kind; find_kind(triggers->triggers[i].tgfoid, &kind))
      visit(&triggers->triggers[i], kind);
}

}  // namespace streamfilter::pg
