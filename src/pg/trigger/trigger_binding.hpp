// Which filter a trigger means, and which table it diverts repeats to: the one that it was created
// for, whatever happens to names.
//
// The trigger keeps the filter's OID in pg_trigger.tgconstrrelid, "the table referenced", which no
// trigger but those of foreign keys uses otherwise; that of the table that it diverts repeats to is
// in tgconstrindid. Dependencies keep DROP from leaving them dangling. Its first two arguments are
// kept equal to their names, with schema, because a dump carries nothing else. Clones of a trigger,
// in partitions, mean what the trigger that CREATE TRIGGER made means.
#pragma once

extern "C" {
#include "utils/rel.h"
}

namespace streamfilter::pg {

// What a trigger means.
struct TriggerBinding {
  Oid filter;  // InvalidOid: it is bound to none
  Oid target;  // for repeats; InvalidOid: it does not divert them
};

// A row of pg_trigger.
struct TriggerRow {
  Oid trigger;
  Oid parent;  // that it was cloned from; InvalidOid: it was not
  Oid table;
  Oid function;
  TriggerBinding binding;
  int16 type;  // pg_trigger.tgtype
};

// False: there is no such trigger.
bool read_trigger_row(Oid trigger, TriggerRow* row);

// Keeps others from dropping and binding it; false: another session has it. Nobody waits.
bool lock_trigger_if_free(Oid trigger);

// The filter that it means, by itself or as a clone; InvalidOid: it is bound to none.
Oid filter_of_trigger(const TriggerRow* row);

// Binds the trigger, which is no clone, or writes the names anew. The caller holds a lock on the
// trigger's table that keeps others from altering its triggers.
void bind_trigger(Oid trigger, TriggerBinding binding);

// The trigger, and its clones in partitions, fire whatever session_replication_role is. The caller
// holds the same lock.
void enable_always(Oid trigger);

// For a trigger that was created before triggers were bound, or where no event trigger could see
// it, as pg_upgrade does it: binds it while a statement fires it. If it cannot be had now, the next
// statement will do it. Returns the binding, which may be another if another session came first.
TriggerBinding bind_when_fired(Oid trigger, Oid table, TriggerBinding binding);

// All triggers of ours that are no clones, as TriggerRow*: those bound to the filter, or all.
List* find_triggers(Oid filter);

// Those that divert repeats to the table, as TriggerRow*.
List* find_diverting_triggers(Oid target);

// Those of all kinds that depend on the relation: it is their filter, or they divert repeats to it.
List* find_triggers_using(Oid relation);

// Raises 2BP01 if a trigger of ours depends on the relation in a way that would let it go in
// silence, and is not of a table that is dropped, too.
void check_droppable(Oid relation, const List* dropped);

// The trigger means no filter any more until it fires again, and is in nobody's way.
void unbind_trigger(const TriggerRow* row);

// What it means has been renamed or moved, and its arguments do not say so yet.
bool has_former_names(const TriggerRow* row);

}  // namespace streamfilter::pg
