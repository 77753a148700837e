#include "pg/server/postgres.hpp"

extern "C" {
#include "access/sysattr.h"
#include "utils/datum.h"
}

#include "pg/handle/filter_keys.hpp"
#include "pg/trigger/key_indexes.hpp"
#include "pg/trigger/row_fate.hpp"

namespace streamfilter::pg {

// In the per-tuple context.
struct PendingRow {
  MemoryContextCallback callback;  // does nothing once the row is not in the list
  PendingRow* next;                // those of inner statements come first
  uint64 query;
  const FateRule* rule;
  RowJudge* judge;
  const Trigger* trigger;
  Relation table;
  TupleTableSlot* row;
  Element element;
  bool has_key, added, is_listed;
  bool stored_abroad;  // by a foreign table
  Datum* values;       // of the key's columns; nullptr: nothing can change them
  bool* isnull;
};

namespace {

void unlist(PendingRow* row) {
  PendingRow** at = &pending_rows;
  while (*at != row) at = &(*at)->next;
  *at = row->next;
  row->is_listed = false;
}

// ---- foreign tables ----------------------------------------------------------------------------

// The executor's own copy of the functions of a foreign table's wrapper tells us what it answers.
struct Abroad {
  const ResultRelInfo* target;
  ExecForeignInsert_function insert;
  Abroad* next;
  MemoryContextCallback callback;
};

Abroad* abroad = nullptr;

void forget_abroad(void* target) {
  Abroad** at = &abroad;
  while (*at != target) at = &(*at)->next;
  *at = (*at)->next;
}

TupleTableSlot* insert_abroad(EState* estate, ResultRelInfo* target, TupleTableSlot* row,
                              TupleTableSlot* plan_slot) {
  const Abroad* at = abroad;
  while (at->target != target) at = at->next;
  TupleTableSlot* stored = at->insert(estate, target, row, plan_slot);
  for (PendingRow* other = pending_rows; other != nullptr; other = other->next)
    if (other->row == row) other->stored_abroad = stored != nullptr;
  return stored;
}

// Rows must go one by one.
void watch_abroad(ResultRelInfo* target) {
  target->ri_BatchSize = 1;
  FdwRoutine* routine = target->ri_FdwRoutine;
  if (routine->ExecForeignInsert == insert_abroad) return;
  auto* entry = allocate_zeros<Abroad>();
  *entry = {target, routine->ExecForeignInsert, abroad, {forget_abroad, entry, nullptr}};
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &entry->callback);
  abroad = entry;
  routine->ExecForeignInsert = insert_abroad;
}

// ---- what became of a row ----------------------------------------------------------------------

bool is_own_row(Relation table, TupleTableSlot* slot) {
  if (!ItemPointerIsValid(&slot->tts_tid)) return false;
  ItemPointerData place = slot->tts_tid;
  TupleTableSlot* found = table_slot_create(table, nullptr);
  bool own = table_tuple_fetch_row_version(table, &place, SnapshotSelf, found);
  if (own && table->rd_tableam == GetHeapamTableAmRoutine()) {
    bool isnull;
    const Datum inserted_by = slot_getsysattr(found, MinTransactionIdAttributeNumber, &isnull);
    own = TransactionIdIsCurrentTransactionId(DatumGetTransactionId(inserted_by));
  }
  ExecDropSingleTupleTableSlot(found);
  return own;
}

// The slot of what DO UPDATE makes of the present row; nullptr: there is no such clause.
TupleTableSlot* updated_slot(const FateRule* rule) {
  if (rule->target == nullptr || rule->target->ri_onConflict == nullptr) return nullptr;
  return rule->target->ri_onConflict->oc_ProjSlot;
}

bool is_stored(const PendingRow* row) {
  if (row->table->rd_rel->relkind == RELKIND_FOREIGN_TABLE) return row->stored_abroad;
  if (is_own_row(row->table, row->row)) return true;
  TupleTableSlot* updated = updated_slot(row->rule);
  return updated != nullptr && !TTS_EMPTY(updated) && is_own_row(row->table, updated);
}

[[noreturn]] void raise_changed(const PendingRow* row, int input) {
  const TriggerPlan* plan = row->judge->found.plan;
  const Form_pg_attribute column =
      TupleDescAttr(RelationGetDescr(row->table), plan->inputs[input].source);
  ereport(
      ERROR, errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
      errmsg("column \"%s\" of table \"%s\" has changed after trigger \"%s\" has judged the row",
             NameStr(column->attname), RelationGetRelationName(row->table), row->trigger->tgname),
      errdetail("The column is part of the key of filter \"%s\". These triggers fire later: %s.",
                row->judge->keys.filter->relation->name, row->rule->later),
      errhint("Triggers fire in the order of their names: give trigger \"%s\" one that sorts "
              "last.",
              row->trigger->tgname));
}

// Raises if the row was stored with another key than the one that was judged. Values that differ
// may be equal keys.
void check_unchanged(const PendingRow* row) {
  const TriggerPlan* plan = row->judge->found.plan;
  for (int i = 0; i < plan->count; ++i) {
    const KeyInput* input = &plan->inputs[i];
    if (input->column->role != Role::key) continue;
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(row->table), input->source);
    bool isnull;
    const Datum value = slot_getattr(row->row, input->source + 1, &isnull);
    if (isnull == row->isnull[i] &&
        (isnull || datumIsEqual(value, row->values[i], column->attbyval, column->attlen)))
      continue;
    Element element;
    const bool has_key = build_element(&row->judge->keys, row->row, &element);
    if (has_key != row->has_key || (has_key && element.hash != row->element.hash))
      raise_changed(row, i);
    return;
  }
}

[[noreturn]] void raise_unknown(const Trigger* trigger, Relation table) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("trigger \"%s\" cannot tell whether a row of table \"%s\" was stored",
                 trigger->tgname, RelationGetRelationName(table)),
          errdetail("The statement does not insert rows as PostgreSQL's own executor does."),
          errhint("Leave out ON CONFLICT, and let no other trigger fire after this one."));
}

// Is DO UPDATE at work on the present row? A modifying CTE that its expressions are the first to
// read frees the same memory.
bool is_updating(const FateRule* rule) {
  return updated_slot(rule) != nullptr && !TTS_EMPTY(rule->target->ri_onConflict->oc_Existing);
}

[[noreturn]] void raise_within_update(const PendingRow* row) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("cannot modify rows in a query that ON CONFLICT DO UPDATE reads"),
          errdetail("Trigger \"%s\" of table \"%s\" could not tell what becomes of the row.",
                    row->trigger->tgname, RelationGetRelationName(row->table)),
          errhint("Modify them in a statement of its own."));
}

void settle(PendingRow* row) {
  unlist(row);
  if (TTS_EMPTY(row->row)) raise_unknown(row->trigger, row->table);
  RowJudge* judge = row->judge;
  judge->row = {row->trigger, row->table};
  prepare_judge(judge);
  if (is_stored(row)) {
    if (row->values != nullptr) check_unchanged(row);
  } else if (is_updating(row->rule)) {
    raise_within_update(row);
  } else if (row->added && !is_in_indexes(row->rule->key_indexes, row->table, row->row)) {
    judge_key(judge->keys.filter, row->element, Intent::take_back);
  }
}

// In memory of its own, since the caller's is about to be freed.
void settle_in_scratch(PendingRow* row) {
  MemoryContext scratch = make_small_context("streamfilter row's fate", TopTransactionContext);
  MemoryContext caller = MemoryContextSwitchTo(scratch);
  settle(row);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(scratch);
}

void on_reset(void* arg) {
  auto* row = static_cast<PendingRow*>(arg);
  if (!row->is_listed) return;
  IsTransactionState() ? settle_in_scratch(row) : unlist(row);
}

void copy_key(PendingRow* row) {
  const TriggerPlan* plan = row->judge->found.plan;
  row->values = allocate<Datum>(plan->count);
  row->isnull = allocate<bool>(plan->count);
  for (int i = 0; i < plan->count; ++i) {
    const int source = plan->inputs[i].source;
    const Form_pg_attribute column = TupleDescAttr(RelationGetDescr(row->table), source);
    const Datum value = slot_getattr(row->row, source + 1, &row->isnull[i]);
    row->values[i] = row->isnull[i] ? Datum{0} : datumCopy(value, column->attbyval, column->attlen);
  }
}

// ---- the rule ----------------------------------------------------------------------------------

// Those that fire after this one, by their names; nullptr: none.
const char* find_later_triggers(const Trigger* trigger, const TriggerDesc* triggers) {
  const bool replica = SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA;
  const char* names = nullptr;
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i) {
    const Trigger* other = &triggers->triggers[i];
    if (other == trigger || strcmp(other->tgname, trigger->tgname) <= 0 ||
        !TRIGGER_TYPE_MATCHES(other->tgtype, TRIGGER_TYPE_ROW, TRIGGER_TYPE_BEFORE,
                              TRIGGER_TYPE_INSERT) ||
        other->tgenabled == TRIGGER_DISABLED ||
        other->tgenabled == (replica ? TRIGGER_FIRES_ON_ORIGIN : TRIGGER_FIRES_ON_REPLICA))
      continue;
    const char* name = quote_identifier(other->tgname);
    names = names == nullptr ? pstrdup(name) : psprintf("%s, %s", names, name);
  }
  return names;
}

[[noreturn]] void raise_not_last(const RowJudge* judge, const char* later) {
  ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
          errmsg("trigger \"%s\" must be the last BEFORE INSERT row trigger of table \"%s\"",
                 judge->row.trigger->tgname, RelationGetRelationName(judge->row.table)),
          errdetail("Rows come by logical replication, which does not tell whether a later trigger "
                    "has dropped one. These fire later: %s.",
                    later),
          errhint("Triggers fire in the order of their names: give this one a name that sorts "
                  "last."));
}

}  // namespace

bool is_fate_open(const TriggerData* call, const RowSource& source) {
  const TriggerDesc* triggers =
      source.target != nullptr ? source.target->ri_TrigDesc : call->tg_relation->trigdesc;
  return source.conflicts || call->tg_relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE ||
         find_later_triggers(call->tg_trigger, triggers) != nullptr;
}

FateRule* find_fate_rule(const RowJudge* judge, const RowSource& source) {
  const bool is_foreign = source.target != nullptr && source.target->ri_FdwRoutine != nullptr;
  const char* later = find_later_triggers(judge->row.trigger, triggers_of(judge));
  if (later != nullptr && innermost_frame() == nullptr) raise_not_last(judge, later);
  const bool conflicts = source.conflicts && may_refuse_new_keys(source.target, judge->found.plan);
  if (later == nullptr && !conflicts && !is_foreign) return nullptr;
  auto* rule = allocate<FateRule>();
  *rule = {const_cast<ResultRelInfo*>(source.target), source.conflicts, later, NIL};
  if (source.conflicts) rule->key_indexes = find_key_indexes(judge->row.table, judge->found.plan);
  if (is_foreign) watch_abroad(rule->target);
  return rule;
}

void await_fate(const FateRule* rule, RowJudge* judge, const TriggerData* call,
                const Element* element, bool added) {
  // The triggers of a row fire in the order of their names.
  for (const PendingRow* other = pending_rows; other != nullptr; other = other->next)
    if (other->row == call->tg_trigslot &&
        strcmp(other->trigger->tgname, call->tg_trigger->tgname) >= 0)
      raise_unknown(call->tg_trigger, call->tg_relation);
  if (!added && rule->later == nullptr) return;
  auto* row = allocate_zeros<PendingRow>();
  row->callback = {on_reset, row, nullptr};
  row->query = running_query;
  row->rule = rule;
  row->judge = judge;
  row->trigger = call->tg_trigger;
  row->table = call->tg_relation;
  row->row = call->tg_trigslot;
  row->has_key = element != nullptr;
  row->added = added;
  if (element != nullptr) row->element = *element;
  if (rule->later != nullptr) copy_key(row);
  // Also in the tuple, which a trigger may return with a change.
  ItemPointerSetInvalid(&row->row->tts_tid);
  ItemPointerSetInvalid(&call->tg_trigtuple->t_self);
  if (TupleTableSlot* updated = updated_slot(rule)) ItemPointerSetInvalid(&updated->tts_tid);
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &row->callback);
  row->next = pending_rows;
  row->is_listed = true;
  pending_rows = row;
}

void settle_fates(uint64 query) {
  while (pending_rows != nullptr && pending_rows->query == query) settle_in_scratch(pending_rows);
}

void forget_fates(uint64 query) {
  while (pending_rows != nullptr && pending_rows->query == query) unlist(pending_rows);
}

}  // namespace streamfilter::pg
