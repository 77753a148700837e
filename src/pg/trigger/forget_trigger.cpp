// streamfilter_forget: the filter follows its table.
//
// A deleted row takes its key along. An updated key is forgotten, and the new one remembered.
// TRUNCATE empties the filter.
//
// Triggers of rows are created AFTER, which would be too late: a statement may delete rows and
// insert others with their keys, and AFTER triggers fire at its end. So a statement that begins
// makes them the last BEFORE triggers of its targets (forget_first): when these fire, the row is
// locked, and nothing keeps it from being changed. Generated columns, which PostgreSQL computes
// after BEFORE triggers, are computed for them. Not in foreign tables, nor for a trigger's
// condition where there are generated columns. WITH parts that nobody reads, which would run at the
// end, run first.
//
// What still comes first is an INSERT that is judged before the same statement, or one within it,
// deletes the row with its key: by a foreign key's cascade, MERGE, or a trigger. Keys of repeats
// that such a statement drops are noted, and it fails when it forgets one.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/nodeModifyTable.h"
}

#include "pg/handle/filter_keys.hpp"
#include "pg/storage/image.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/forget_trigger.hpp"
#include "pg/trigger/judge_row.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
namespace {

// ---- keys that a statement notes ----------------------------------------------------------------

struct NotedKey {
  uint64 hash;
  uint64 filter;  // first field, without a gap behind it, for the hash table's key
};

struct NotedEntry {
  NotedKey key;
  uint64 statement, parent;  // of dropped repeats
};

// In the transaction's memory, for one statement.
struct NotedKeys {
  HTAB* keys;  // nullptr: none
  uint64 statement;
};

// Keys that the running statement has given to rows. An UPDATE that shifts keys (id + 1) gives one
// row the key that it takes from another; such a key must not be forgotten, whatever the order of
// rows.
NotedKeys updated = {};

// Keys of repeats that the outermost statement has dropped, each with the statement that has
// dropped it last, and the one that runs that.
NotedKeys dropped = {};

void on_memory_reset(void* noted) { static_cast<NotedKeys*>(noted)->keys = nullptr; }

NotedEntry* note_key(NotedKeys* noted, uint64 statement, Oid filter, uint64 hash) {
  if (noted->keys == nullptr || noted->statement != statement) {
    if (noted->keys != nullptr)
      hash_destroy(noted->keys);
    else
      call_on_reset(TopTransactionContext, on_memory_reset, noted);
    noted->keys = nullptr;
    noted->keys =
        make_hash_table<NotedKey, NotedEntry>("streamfilter noted keys", 16, TopTransactionContext);
    noted->statement = statement;
  }
  const NotedKey key = {hash, filter};
  return static_cast<NotedEntry*>(hash_search(noted->keys, &key, HASH_ENTER, nullptr));
}

const NotedEntry* find_noted(const NotedKeys& noted, Oid filter, uint64 hash) {
  const NotedKey key = {hash, filter};
  return static_cast<NotedEntry*>(hash_search(noted.keys, &key, HASH_FIND, nullptr));
}

bool was_updated_to(Oid filter, uint64 hash) {
  return updated.keys != nullptr && updated.statement == running_statement &&
         find_noted(updated, filter, hash) != nullptr;
}

// ---- repeats that a statement has dropped -------------------------------------------------------

// May the statement that runs, or one that runs it, delete rows with the same keys later on?
bool may_forget_later(const RowJudge* judge) {
  for (const Frame* frame = innermost_frame(); frame != nullptr; frame = frame->below) {
    const QueryDesc* query = frame->query;
    if (query == nullptr || query->operation == CMD_SELECT) continue;
    if (query->operation != CMD_INSERT || query->plannedstmt->hasModifyingCTE) return true;
    if (frame == innermost_frame() && query->plannedstmt->invalItems != NIL) return true;
  }
  const TriggerDesc* triggers = CopyTriggerDesc(const_cast<TriggerDesc*>(triggers_of(judge)));
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i)
    if (TriggerKind kind; triggers->triggers[i].tgfoid >= FirstNormalObjectId &&
                          triggers->triggers[i].tgfoid != judge->row.trigger->tgfoid &&
                          TRIGGER_FOR_INSERT(triggers->triggers[i].tgtype) &&
                          !find_kind(triggers->triggers[i].tgfoid, &kind))
      return true;
  return false;
}

bool is_followed(Oid filter) {
  for (const auto* row : each<TriggerRow>(find_triggers_using(filter)))
    if (is_own_function(row->function, function_name(TriggerKind::forget))) return true;
  return false;
}

// Raises if a repeat with this key was dropped by a statement that still runs, or by one that the
// forgetting one has run.
void check_not_dropped(const FilterHandle* filter, uint64 hash) {
  const NotedEntry* found = find_noted(dropped, filter->relid, hash);
  if (found == nullptr) return;
  const Frame* frame = innermost_frame();
  bool lost = frame != nullptr && frame->number == found->parent && frame->query != nullptr &&
              frame->query->operation != CMD_SELECT;
  for (; frame != nullptr && !lost; frame = frame->below) lost = frame->number == found->statement;
  if (lost)
    ereport(ERROR, errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
            errmsg("statement drops a row as a repeat of one that it deletes"),
            errdetail("Filter \"%s\" judged the new row first: neither would be left.",
                      filter->relation->name),
            errhint("Delete the rows first, in a statement of its own."));
}

// ---- the trigger --------------------------------------------------------------------------------

// Kept in fn_extra, one per table (partition) of a statement.
struct ForgetState {
  MemoryContext context;  // context of all that follows
  Oid trigger;
  Oid owner;       // owner of the table
  bool moves;      // see moves_rows
  bool generated;  // a column of the key is
  PendingTriggerCounts* pending_counts;
  ItemPointerData updated;  // the row that was updated last; it may move to another partition
  KeyBuilder keys;          // no filter until resolved
};

const TriggerData* check_call(FunctionCallInfo fcinfo) {
  if (!CALLED_AS_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("streamfilter_forget can only be called as a trigger"));
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  Trigger created = *call->tg_trigger;
  if (TRIGGER_FOR_ROW(created.tgtype)) created.tgtype &= ~TRIGGER_TYPE_BEFORE;
  check_forget_event(&created, call->tg_relation);
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

bool has_generated(const TriggerPlan* plan, Relation table) {
  bool found = false;
  for (int i = 0; i < plan->count; ++i)
    found |= TupleDescAttr(RelationGetDescr(table), plan->inputs[i].source)->attgenerated != '\0';
  return found;
}

void resolve_forget(ForgetState* state, const TriggerData* call) {
  const Trigger* trigger = call->tg_trigger;
  state->keys.filter = nullptr;
  MemoryContextReset(state->context);
  const InContext switched(state->context);
  DeclaredTrigger declared = find_declared(trigger, call->tg_relation);
  FilterHandle* filter =
      filter_for_use(bind_and_lock(trigger, &declared, RowExclusiveLock), Use::judge_granted);
  const TriggerPlan* plan = plan_forgetting(trigger, call->tg_relation, filter->relation);
  state->trigger = trigger->tgoid;
  ItemPointerSetInvalid(&state->updated);
  state->owner = declared.owner;
  state->moves = call->tg_relation->rd_rel->relispartition && moves_rows(call);
  state->generated = has_generated(plan, call->tg_relation);
  state->pending_counts = pending_trigger_counts(trigger->tgoid, filter->relid);
  state->keys = make_key_builder(filter, plan->inputs, plan->count);
}

ForgetState* prepare_forget(FunctionCallInfo fcinfo, const TriggerData* call) {
  auto* state = static_cast<ForgetState*>(fcinfo->flinfo->fn_extra);
  if (unlikely(state == nullptr)) {
    state = allocate_zeros<ForgetState>(1, fcinfo->flinfo->fn_mcxt);
    state->context = make_small_context("streamfilter forget trigger", fcinfo->flinfo->fn_mcxt);
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
  if (was_updated_to(filter->relid, element.hash)) return;
  if (unlikely(dropped.keys != nullptr)) check_not_dropped(filter, element.hash);
  judge_key(filter, element, Intent::erase);
}

bool is_same_row(const ItemPointerData* a, const ItemPointerData* b) {
  return ItemPointerIsValid(a) &&
         ItemPointerEquals(const_cast<ItemPointer>(a), const_cast<ItemPointer>(b));
}

void delete_row(const ForgetState* state, TupleTableSlot* row) {
  // The row continues in another partition.
  if (state->moves || is_same_row(&state->updated, &row->tts_tid)) return;
  Element element;
  if (build_element(&state->keys, row, &element)) forget_key(state, element);
}

// The key of a new row whose generated columns PostgreSQL has yet to compute.
bool build_generated(const ForgetState* state, const TriggerData* call, Element* element) {
  EState* estate = innermost_frame()->query->estate;
  ResultRelInfo* target = nullptr;
  for (auto* opened : each<ResultRelInfo>(estate->es_opened_result_relations))
    if (opened->ri_RelationDesc == call->tg_relation) target = opened;
  TupleTableSlot* row =
      MakeSingleTupleTableSlot(RelationGetDescr(call->tg_relation), &TTSOpsVirtual);
  ExecCopySlot(row, call->tg_newslot);
  ExecComputeStoredGenerated(target, estate, row, CMD_UPDATE);
  const bool has_key = build_element(&state->keys, row, element);
  ExecDropSingleTupleTableSlot(row);
  return has_key;
}

void update_row(ForgetState* state, const TriggerData* call) {
  FilterHandle* filter = state->keys.filter;
  state->updated = call->tg_trigslot->tts_tid;
  Element old_key, new_key;
  const bool had_key = build_element(&state->keys, call->tg_trigslot, &old_key);
  const bool has_key = state->generated && TRIGGER_FIRED_BEFORE(call->tg_event)
                           ? build_generated(state, call, &new_key)
                           : build_element(&state->keys, call->tg_newslot, &new_key);
  if (had_key && has_key && old_key.hash == new_key.hash) return;
  if (had_key) forget_key(state, old_key);
  if (!has_key) return;
  judge_key(filter, new_key, Intent::remember);
  note_key(&updated, running_statement, filter->relid, new_key.hash);
}

void follow_row(FunctionCallInfo fcinfo, const TriggerData* call) {
  ForgetState* state = prepare_forget(fcinfo, call);
  if (state->keys.filter->mode == FilterMode::off) return;
  ++(*counts_to_add_to(state->pending_counts))[TriggerCount::rows];
  if (TRIGGER_FIRED_BY_UPDATE(call->tg_event))
    update_row(state, call);
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

// streamfilter_forget(filter [, column …]): AFTER DELETE OR UPDATE FOR EACH ROW, or AFTER TRUNCATE.
// Forgets the keys of rows that have left the table.
SF_FUNCTION(streamfilter_forget) {
  const TriggerData* call = check_call(fcinfo);
  if (enabled && !keeps_keys(call->tg_relation)) {
    require_shared_state();
    if (TRIGGER_FIRED_BY_TRUNCATE(call->tg_event))
      forget_all(call);
    else
      follow_row(fcinfo, call);
  }
  return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(call->tg_event) ? call->tg_newtuple
                                                                 : call->tg_trigtuple);
}

// ---- before the first row -----------------------------------------------------------------------

namespace {

bool forgets_rows(const Trigger* trigger) {
  TriggerKind kind;
  return TRIGGER_FOR_ROW(trigger->tgtype) && TRIGGER_FOR_AFTER(trigger->tgtype) &&
         find_kind(trigger->tgfoid, &kind) && kind == TriggerKind::forget;
}

bool may_forget(const ResultRelInfo* target) {
  const TriggerDesc* triggers = target->ri_TrigDesc;
  return unlikely(triggers != nullptr) &&
         (triggers->trig_delete_after_row || triggers->trig_update_after_row);
}

// The target's copy of its triggers is of this statement only, and none of them has fired.
bool make_last_before(ResultRelInfo* target) {
  if (!may_forget(target) || target->ri_FdwRoutine != nullptr) return false;
  TriggerDesc* triggers = target->ri_TrigDesc;
  const TupleConstr* constraints = RelationGetDescr(target->ri_RelationDesc)->constr;
  const bool generates = constraints != nullptr && constraints->has_generated_stored;
  const int count = triggers->numtriggers;
  int rest = count;
  for (int i = 0; i < rest;) {
    Trigger trigger = triggers->triggers[i];
    if (!forgets_rows(&trigger) || (generates && trigger.tgqual != nullptr)) {
      ++i;
      continue;
    }
    memmove(&triggers->triggers[i], &triggers->triggers[i + 1],
            sizeof(Trigger) * static_cast<Size>(count - i - 1));
    trigger.tgtype |= TRIGGER_TYPE_BEFORE;
    triggers->triggers[count - 1] = trigger;
    triggers->trig_delete_before_row |= TRIGGER_FOR_DELETE(trigger.tgtype);
    triggers->trig_update_before_row |= TRIGGER_FOR_UPDATE(trigger.tgtype);
    --rest;
  }
  return rest < count;
}

// As PostgreSQL would at the end of the query.
void run_to_end(ModifyTableState* part, EState* estate) {
  const InContext context(estate->es_query_cxt);
  do ResetPerTupleExprContext(estate);
  while (!TupIsNull(ExecProcNode(&part->ps)));
}

pg_noinline void forget_before_inserts(EState* estate) {
  bool forgets = false;
  for (auto* opened : each<ResultRelInfo>(estate->es_opened_result_relations))
    forgets |= make_last_before(opened);
  if (!forgets) return;
  for (auto* part : each<ModifyTableState>(estate->es_auxmodifytables)) {
    if (part->operation != CMD_INSERT &&
        reinterpret_cast<const ModifyTable*>(part->ps.plan)->returningLists == NIL)
      run_to_end(part, estate);
  }
}

}  // namespace

void forget_first(RunCall* call) {
  EState* estate = call->get<QueryDesc*>()->estate;
  for (auto* opened : each<ResultRelInfo>(estate->es_opened_result_relations)) {
    if (likely(!may_forget(opened))) continue;
    forget_before_inserts(estate);
    break;
  }
  call->go_on();
}

bool look_for_deletions(RowJudge* judge) {
  auto& notes = judge->statement.notes_dropped;
  if (notes == RowJudge::OfStatement::unknown)
    notes = innermost_frame() != nullptr && judge->own.kind != TriggerKind::mark &&
                    may_forget_later(judge) && is_followed(judge->keys.filter->relid)
                ? RowJudge::OfStatement::yes
                : RowJudge::OfStatement::no;
  return notes == RowJudge::OfStatement::yes;
}

void note_dropped(const RowJudge* judge, const Element& element) {
  if (judge->keys.filter->mode != FilterMode::enforce) return;
  const Frame* frame = innermost_frame();
  const Frame* first = frame;
  while (first->below != nullptr) first = first->below;
  NotedEntry* repeat = note_key(&dropped, first->number, judge->keys.filter->relid, element.hash);
  repeat->statement = frame->number;
  repeat->parent = frame->below == nullptr ? 0 : frame->below->number;
}

// ---- the definition -----------------------------------------------------------------------------

[[noreturn]] static void raise_cannot_forget(const Trigger* trigger, Relation table,
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
}

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
