// What judging rows of a table takes, found once for a table of a statement.
#include "pg/server/postgres.hpp"

#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/asked_runs.hpp"
#include "pg/server/citus.hpp"
#include "pg/trigger/forgetful_filters.hpp"
#include "pg/trigger/judge_row.hpp"
#include "pg/trigger/key_indexes.hpp"

namespace streamfilter::pg {
namespace {

// ---- what a table takes -------------------------------------------------------------------------

TriggerBinding lock_both(const RowJudge* judge, const DeclaredTrigger* declared) {
  const Oid filter =
      lock_filter(judge->row.trigger, judge->own.kind, declared, RowExclusiveLock, ERROR);
  return {filter, judge->own.kind == TriggerKind::divert
                      ? lock_target(judge->row.trigger, declared, RowExclusiveLock, ERROR)
                      : InvalidOid};
}

// Locks the filter and the table for repeats, and binds the trigger to them.
TriggerBinding bind_and_lock(const RowJudge* judge, DeclaredTrigger* declared) {
  const TriggerBinding binding = lock_both(judge, declared);
  if (OidIsValid(declared->binding.filter)) return binding;
  declared->binding = bind_when_fired(declared->trigger, declared->table, binding);
  return lock_both(judge, declared);
}

// The parent's trigger of this name, if it has the same filter; InvalidOid if there is none.
Oid find_in_parent(const RowJudge* judge, TriggerBinding binding, Relation parent) {
  const Oid oid = get_trigger_oid(RelationGetRelid(parent), judge->row.trigger->tgname, true);
  const TriggerDesc* triggers = CopyTriggerDesc(parent->trigdesc);
  for (int i = 0; triggers != nullptr && i < triggers->numtriggers; ++i) {
    const Trigger* trigger = &triggers->triggers[i];
    if (trigger->tgoid != oid || trigger->tgfoid != judge->row.trigger->tgfoid) continue;
    const DeclaredTrigger declared = find_declared(trigger, parent);
    if (find_filter(trigger, judge->own.kind, &declared) != binding.filter) continue;
    if (!OidIsValid(declared.binding.filter)) bind_when_fired(oid, declared.table, binding);
    return oid;
  }
  return InvalidOid;
}

// A table may have several parents, and the first may have been detached.
List* parents_of(Oid table) {
  List* parents = NIL;
  scan_catalog<FormData_pg_inherits>(InheritsRelationId, InheritsRelidSeqnoIndexId,
                                     {{Anum_pg_inherits_inhrelid, table}},
                                     [&](const FormData_pg_inherits& row, HeapTuple, TupleDesc) {
                                       parents = lappend_oid(parents, row.inhparent);
                                     });
  return parents;
}

// A chunk of TimescaleDB has an unmarked copy of its parent's trigger, and rows of one statement go
// to several chunks. No event trigger sees such a copy, so it may not be bound yet.
Oid find_parent_trigger(const RowJudge* judge, const DeclaredTrigger* declared,
                        TriggerBinding binding) {
  if (!judge->statement.outside || judge->row.trigger->tgisclone) return declared->trigger;
  for (const Oid oid : each_oid(parents_of(RelationGetRelid(judge->row.table)))) {
    Relation parent = try_relation_open(oid, AccessShareLock);
    if (parent == nullptr) continue;
    const Oid trigger = find_in_parent(judge, binding, parent);
    table_close(parent, NoLock);
    if (OidIsValid(trigger)) return trigger;
  }
  return declared->trigger;
}

// The table for repeats may have anything that waits.
KeyRoute route_of_keys(const RowJudge* judge) {
  if (OidIsValid(judge->found.target) || needs_each_row(&judge->keys)) return {};
  return {KeyRoute::trigger, RelationGetRelid(judge->row.table)};
}

// Kept results must depend only on table and filter, whose changes we notice: not on casts, columns
// of indexes, a looked-up name, or tables of other extensions.
bool lasts(const RowJudge* judge, const DeclaredTrigger& declared) {
  return OidIsValid(declared.binding.filter) && judge->keys.plain && !judge->statement.outside &&
         !OidIsValid(judge->found.target) && judge->found.key_indexes == NIL && !is_citus_loaded();
}

// ---- each row once ------------------------------------------------------------------------------

[[noreturn]] void raise_judged_twice(const RowJudge* judge) {
  const FilterHandle* filter = judge->keys.filter;
  const char* trigger = judge->row.trigger->tgname;
  const char* table = RelationGetRelationName(judge->row.table);
  const bool asked = filter->last.asked_in >= judge->statement.number;
  const bool same = filter->last.fired_by == judge->found.created;
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
      asked  ? errdetail("The statement gives it keys by streamfilter_seen() or INSERT, which it "
                          "remembers; trigger \"%s\" of table \"%s\" would then take their rows "
                          "for repeats.",
                         trigger, table)
      : same ? errdetail("A trigger or a function of the statement puts other rows into the same "
                         "table; trigger \"%s\" of table \"%s\" would judge them in between.",
                         trigger, table)
             : errdetail("The statement puts rows into another table whose trigger uses it, too; "
                         "trigger \"%s\" of table \"%s\" would take the same rows for repeats.",
                         trigger, table),
      asked  ? errhint("Leave it to the trigger, or to the query while the trigger is disabled.")
      : same ? errhint("Insert them in an AFTER trigger, or by a statement of their own.")
             : errhint("Give the two tables different filters, or use two statements."));
}

[[noreturn]] void raise_diverted_twice(const RowJudge* judge) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", judge->keys.filter->relation->name),
          errdetail("It has called the row a repeat, which is being diverted; trigger \"%s\" of "
                    "table \"%s\" would take it for one again.",
                    judge->row.trigger->tgname, RelationGetRelationName(judge->row.table)),
          errhint("Divert repeats to a table without such a trigger."));
}

[[noreturn]] void raise_asked_twice(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("Rules have made several queries of the statement, and each gives the filter "
                    "the same keys; from the second on, all would be repeats."),
          errhint("Put what is new into a temporary table first, or use a trigger in place of the "
                  "rule."));
}

[[noreturn]] void raise_asked_by_trigger(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("The query has asked it about the row, and a trigger asks it again."),
          errhint("Leave it to one of them."));
}

// Has a query asked whose rows have fired the trigger that asks now?
bool has_fired_asker(const LastStatements& last) {
  if (last.asked_at >= trigger_depth()) return false;
  const Frame* frame = innermost_frame();
  while (frame != nullptr && frame->number != last.asked_in) frame = frame->below;
  return frame != nullptr;
}

}  // namespace

void note_first_asked(FilterHandle* filter, MemoryContext from) {
  LastStatements& last = filter->last;
  if (last.asked_in != 0 && has_fired_asker(last)) raise_asked_by_trigger(filter);
  if (last.asked_in == running_statement && running_statement != 0 &&
      last.asked_by != running_query)
    raise_asked_twice(filter);
  look_at_askers(filter, from);
  last.asked_in = running_statement;
  last.asked_by = running_query;
  last.asked_at = trigger_depth();
  last.asked_from = from;
}

void note_fired(const RowJudge* judge) {
  LastStatements& last = judge->keys.filter->last;
  const uint64 statement = judge->statement.number;
  if (unlikely(is_diverting(judge->keys.filter))) raise_diverted_twice(judge);
  if (unlikely(statement == 0)) return;
  if (unlikely(last.asked_in >= statement || last.fired_in > statement ||
               (last.fired_in == statement && last.fired_by != judge->found.created)))
    raise_judged_twice(judge);
  last.fired_in = statement;
  last.fired_by = judge->found.created;
}

void set_judge_kind(RowJudge* judge, TriggerKind kind) {
  judge->own.kind = kind;
  judge->own.of_repeats = kind == TriggerKind::discard  ? Outcome::discarded
                          : kind == TriggerKind::divert ? Outcome::diverted
                                                        : Outcome::marked;
}

void init_row_judge(RowJudge* judge, TriggerKind kind, uint64 statement, MemoryContext parent) {
  set_judge_kind(judge, kind);
  judge->statement.number = statement;
  judge->own.context = make_small_context("streamfilter trigger", parent);
}

void resolve_judge(RowJudge* judge) {
  RowJudge::Found* found = &judge->found;
  judge->keys.filter = nullptr;
  found->lasts = false;
  judge->statement.notes_dropped = RowJudge::OfStatement::unknown;
  MemoryContextReset(judge->own.context);
  const InContext switched(judge->own.context);
  // Count first: a change during the look-up then forces another look for the next row.
  found->watch = watch_table(RelationGetRelid(judge->row.table));
  found->changes = found->watch->changes;
  DeclaredTrigger declared = find_declared(judge->row.trigger, judge->row.table);
  found->declared = watch_table(declared.table);
  found->declared_changes = found->declared->changes;
  found->replication_role = SessionReplicationRole;
  found->trigger = judge->row.trigger->tgoid;
  found->owner = declared.owner;

  const TriggerBinding binding = bind_and_lock(judge, &declared);
  found->created = is_on_shard(judge->row.trigger, &declared)
                       ? binding.filter
                       : find_parent_trigger(judge, &declared, binding);
  found->target = binding.target;
  FilterHandle* filter = filter_handle(binding.filter);
  const bool is_first = filter->remote == nullptr && is_new(binding.filter);
  // The last call before the row is judged: a further one might replace what the plan refers to.
  use_filter(filter, Use::judge_granted);
  found->counts = pending_trigger_counts(found->trigger, filter->relid);
  found->plan = make_plan(judge->row.trigger, judge->own.kind, judge->row.table, filter->relation);
  if (is_first && !is_new(binding.filter))  // in mode off, it stays new
    warn_of_unknown_rows(judge->row.table, found->plan, filter->relation);
  found->key_indexes =
      found->plan->skips_conflicts ? find_key_indexes(judge->row.table, found->plan) : NIL;
  judge->keys = make_key_builder(filter, found->plan->inputs, found->plan->count);
  found->route = route_of_keys(judge);
  found->lasts = lasts(judge, declared);
}

bool skip_conflicting(const RowJudge* judge, TupleTableSlot* row) {
  if (!is_in_indexes(judge->found.key_indexes, judge->row.table, row)) return false;
  ++(*counts_to_add_to(judge->found.counts))[TriggerCount::discarded];
  return true;
}

HeapTuple set_mark(const RowJudge* judge, TupleTableSlot* row, HeapTuple tuple, bool repeat) {
  bool isnull;
  const Datum old = slot_getattr(row, judge->found.plan->mark, &isnull);
  if (!isnull && DatumGetBool(old) == repeat) return tuple;
  int number = judge->found.plan->mark;
  Datum value = BoolGetDatum(repeat);
  bool null = false;
  return heap_modify_tuple_by_cols(tuple, RelationGetDescr(judge->row.table), 1, &number, &value,
                                   &null);
}

}  // namespace streamfilter::pg
