// streamfilter_forget: the filter follows its table.
//
// A deleted row takes its key along. An updated key is forgotten, and the new one remembered.
// TRUNCATE empties the filter. AFTER triggers see only changes that have really happened.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_trigger.h"
}

#include "pg/handle/filter_keys.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/storage/image.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/forget_trigger.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
namespace {

// ---- keys that the statement has given to rows --------------------------------------------------

// Keys that the running statement has given to rows. An UPDATE that shifts keys (id + 1) gives one
// row the key that it takes from another; such a key must not be forgotten, whatever the order of
// rows.

struct UpdatedKey {
  uint64 hash;
  uint64 filter;  // first field, without a gap behind it, for the hash table's key
};

HTAB* keys = nullptr;  // in the transaction's memory
uint64 statement = 0;  // the statement that the keys belong to

void on_memory_reset(void*) { keys = nullptr; }

void begin_statement() {
  if (keys != nullptr && statement == running_statement) return;
  if (keys != nullptr) {
    hash_destroy(keys);
  } else {
    auto* callback = static_cast<MemoryContextCallback*>(
        MemoryContextAllocZero(TopTransactionContext, sizeof(MemoryContextCallback)));
    callback->func = on_memory_reset;
    MemoryContextRegisterResetCallback(TopTransactionContext, callback);
  }
  keys = nullptr;
  keys = make_hash_table<UpdatedKey>("streamfilter updated keys", 16, TopTransactionContext);
  statement = running_statement;
}

void note_updated_to(Oid filter, uint64 hash) {
  begin_statement();
  const UpdatedKey key = {hash, filter};
  hash_search(keys, &key, HASH_ENTER, nullptr);
}

bool was_updated_to(Oid filter, uint64 hash) {
  if (keys == nullptr || statement != running_statement) return false;
  const UpdatedKey key = {hash, filter};
  return hash_search(keys, &key, HASH_FIND, nullptr) != nullptr;
}

// ---- the trigger --------------------------------------------------------------------------------

// Kept in fn_extra, one per table (partition) of a statement.
struct ForgetState {
  MemoryContext context;  // context of all that follows
  Oid trigger;
  Oid owner;  // owner of the table
  DeleteCause cause;
  PendingTriggerCounts* pending_counts;
  KeyBuilder keys;  // no filter until resolved
};

const TriggerData* check_call(FunctionCallInfo fcinfo) {
  if (!CALLED_AS_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("streamfilter_forget can only be called as a trigger"));
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  check_forget_event(call->tg_trigger, call->tg_relation);
  return call;
}

// Locks the filter, and binds the trigger to it.
Oid bind_and_lock(const Trigger* trigger, DeclaredTrigger* declared, LOCKMODE mode) {
  const Oid filter = lock_filter(trigger, TriggerKind::forget, declared, mode, ERROR);
  if (OidIsValid(declared->binding.filter)) return filter;
  declared->binding = bind_when_fired(declared->trigger, declared->table, {filter, InvalidOid});
  return lock_filter(trigger, TriggerKind::forget, declared, mode, ERROR);
}

// ---- DELETE and UPDATE --------------------------------------------------------------------------

void resolve_forget(ForgetState* state, const TriggerData* call) {
  const Trigger* trigger = call->tg_trigger;
  state->keys.filter = nullptr;
  MemoryContextReset(state->context);
  MemoryContext caller = MemoryContextSwitchTo(state->context);
  DeclaredTrigger declared = find_declared(trigger, call->tg_relation);
  FilterHandle* filter = filter_handle(bind_and_lock(trigger, &declared, RowExclusiveLock));
  use_filter(filter, Use::judge_granted);
  const TriggerPlan* plan = plan_forgetting(trigger, call->tg_relation, filter->relation);
  state->trigger = trigger->tgoid;
  state->owner = declared.owner;
  state->cause = find_delete_cause(call, plan->inputs, plan->count);
  state->pending_counts = pending_trigger_counts(trigger->tgoid, filter->relid);
  state->keys = make_key_builder(filter, plan->inputs, plan->count);
  MemoryContextSwitchTo(caller);
}

ForgetState* prepare_forget(FunctionCallInfo fcinfo, const TriggerData* call) {
  auto* state = static_cast<ForgetState*>(fcinfo->flinfo->fn_extra);
  if (unlikely(state == nullptr)) {
    state = static_cast<ForgetState*>(
        MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(ForgetState)));
    state->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "streamfilter forget trigger",
                                           ALLOCSET_SMALL_SIZES);
    fcinfo->flinfo->fn_extra = state;
  }
  if (likely(state->keys.filter != nullptr)) use_filter(state->keys.filter, Use::judge_granted);
  if (unlikely(!is_current(&state->keys) || state->trigger != call->tg_trigger->tgoid))
    resolve_forget(state, call);
  check_mode(state->keys.filter, state->owner);
  return state;
}

// If another row of the same statement has taken the key, the key stays.
void forget_key(const ForgetState* state, const Element& element) {
  FilterHandle* filter = state->keys.filter;
  if (!was_updated_to(filter->relid, element.hash)) judge_key(filter, element, Intent::erase);
}

void delete_row(const ForgetState* state, TupleTableSlot* row) {
  // The row continues in another partition.
  if (state->cause == DeleteCause::moved) return;
  Element element;
  if (build_element(&state->keys, row, &element)) forget_key(state, element);
}

void update_row(const ForgetState* state, TupleTableSlot* before, TupleTableSlot* after) {
  FilterHandle* filter = state->keys.filter;
  Element old_key, new_key;
  const bool had_key = build_element(&state->keys, before, &old_key);
  const bool has_key = build_element(&state->keys, after, &new_key);
  if (had_key && has_key && old_key.hash == new_key.hash) return;
  if (had_key) forget_key(state, old_key);
  if (!has_key) return;
  judge_key(filter, new_key, Intent::remember);
  note_updated_to(filter->relid, new_key.hash);
}

void follow_row(FunctionCallInfo fcinfo, const TriggerData* call) {
  const ForgetState* state = prepare_forget(fcinfo, call);
  if (state->keys.filter->mode == FilterMode::off) return;
  ++(*counts_to_add_to(state->pending_counts))[TriggerCount::rows];
  if (TRIGGER_FIRED_BY_UPDATE(call->tg_event))
    update_row(state, call->tg_trigslot, call->tg_newslot);
  else
    delete_row(state, call->tg_trigslot);
}

// ---- TRUNCATE -----------------------------------------------------------------------------------

// Does what TRUNCATE of the filter does.
void forget_all(const TriggerData* call) {
  DeclaredTrigger declared = find_declared(call->tg_trigger, call->tg_relation);
  FilterHandle* filter =
      filter_handle(bind_and_lock(call->tg_trigger, &declared, AccessExclusiveLock));
  use_filter(filter, Use::define);
  if (filter->remote == nullptr && peek_slot(filter->relation) == nullptr &&
      !is_anything_saved(filter->relid))
    return;  // nothing to forget
  use_filter(filter, Use::empty);
  use_filter(filter, Use::judge_granted);
  check_mode(filter, declared.owner);
  if (filter->mode != FilterMode::off) reset_filter(filter);
}

}  // namespace

}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_forget(filter [, column …]): AFTER DELETE OR UPDATE FOR EACH ROW, or AFTER TRUNCATE.
// Forgets the keys of rows that have left the table.
SF_FUNCTION(streamfilter_forget) {
  const TriggerData* call = check_call(fcinfo);
  if (!enabled || keeps_keys(call->tg_relation)) return static_cast<Datum>(0);
  require_shared_state();
  if (TRIGGER_FIRED_BY_TRUNCATE(call->tg_event))
    forget_all(call);
  else
    follow_row(fcinfo, call);
  return static_cast<Datum>(0);
}

// ---- the definition -----------------------------------------------------------------------------

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_cannot_forget(const Trigger* trigger, Relation table,
                                      const FilterRelation* filter) {
  char kinds[256];
  list_kinds([](const FilterOps& ops) { return ops.erase != nullptr; }, kinds, sizeof kinds);
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" cannot forget single keys", filter->name),
          errdetail("Trigger \"%s\" fires for rows, and kind %s can forget all keys only. These "
                    "kinds can forget single ones: %s.",
                    trigger->tgname, find_ops(filter->definition.parameters.kind)->name, kinds),
          errhint("CREATE TRIGGER ... AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION "
                  "streamfilter_forget(...);",
                  quote_identifier(RelationGetRelationName(table))));
  pg_unreachable();
}

}  // namespace

void check_forget_event(const Trigger* trigger, Relation table) {
  const int16 type = trigger->tgtype;
  const bool rows = TRIGGER_FOR_ROW(type) && (TRIGGER_FOR_DELETE(type) || TRIGGER_FOR_UPDATE(type));
  const bool all = !TRIGGER_FOR_ROW(type) && TRIGGER_FOR_TRUNCATE(type) &&
                   !TRIGGER_FOR_DELETE(type) && !TRIGGER_FOR_UPDATE(type);
  if (TRIGGER_FOR_AFTER(type) && !TRIGGER_FOR_INSERT(type) && (rows || all)) return;
  ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
          errmsg("trigger \"%s\" of table \"%s\" must be AFTER DELETE OR UPDATE FOR EACH ROW, or "
                 "AFTER TRUNCATE, and nothing else",
                 trigger->tgname, RelationGetRelationName(table)),
          errdetail("streamfilter_forget makes a filter follow what happens to rows that exist."),
          errhint("CREATE TRIGGER ... AFTER DELETE OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION "
                  "streamfilter_forget(...);",
                  quote_identifier(RelationGetRelationName(table))));
}

TriggerPlan* plan_forgetting(const Trigger* trigger, Relation table, const FilterRelation* filter) {
  if (!TRIGGER_FOR_ROW(trigger->tgtype)) return nullptr;
  if (find_ops(filter->definition.parameters.kind)->erase == nullptr)
    raise_cannot_forget(trigger, table, filter);
  return make_plan(trigger, TriggerKind::forget, table, filter);
}

}  // namespace streamfilter::pg
