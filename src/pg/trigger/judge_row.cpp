// streamfilter_discard, streamfilter_mark and streamfilter_divert, row by row; and what judging
// rows of a table takes, found once for a table of a statement, for pg/ingest, too.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/indexing.h"
#include "catalog/pg_inherits.h"
}

#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/asked_runs.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/server/syscache.hpp"
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
  ListCell* cell;
  foreach (cell, parents_of(RelationGetRelid(judge->row.table))) {
    Relation parent = try_relation_open(lfirst_oid(cell), AccessShareLock);
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
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          asked
              ? errdetail("The statement gives it keys by streamfilter_seen() or INSERT, which it "
                          "remembers; trigger \"%s\" of table \"%s\" would then take their rows "
                          "for repeats.",
                          trigger, table)
              : errdetail("The statement puts rows into another table whose trigger uses it, too; "
                          "trigger \"%s\" of table \"%s\" would take the same rows for repeats.",
                          trigger, table),
          asked ? errhint("Leave it to the trigger, or to the query while the trigger is disabled.")
                : errhint("Give the two tables different filters, or use two statements."));
  pg_unreachable();
}

[[noreturn]] void raise_diverted_twice(const RowJudge* judge) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", judge->keys.filter->relation->name),
          errdetail("It has called the row a repeat, which is being diverted; trigger \"%s\" of "
                    "table \"%s\" would take it for one again.",
                    judge->row.trigger->tgname, RelationGetRelationName(judge->row.table)),
          errhint("Divert repeats to a table without such a trigger."));
  pg_unreachable();
}

[[noreturn]] void raise_asked_twice(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("Rules have made several queries of the statement, and each gives the filter "
                    "the same keys; from the second on, all would be repeats."),
          errhint("Put what is new into a temporary table first, or use a trigger in place of the "
                  "rule."));
  pg_unreachable();
}

[[noreturn]] void raise_asked_by_trigger(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("The query has asked it about the row, and a trigger asks it again."),
          errhint("Leave it to one of them."));
  pg_unreachable();
}

// Has a query asked whose rows have fired the trigger that asks now?
bool has_fired_asker(const LastStatements& last) {
  if (last.asked_at >= trigger_depth()) return false;
  const Frame* frame = innermost_frame();
  while (frame != nullptr && frame->number != last.asked_in) frame = frame->below;
  return frame != nullptr;
}

}  // namespace

void note_first_asked(FilterHandle* filter) {
  LastStatements& last = filter->last;
  if (last.asked_in != 0 && has_fired_asker(last)) raise_asked_by_trigger(filter);
  if (last.asked_in == running_statement && running_statement != 0 &&
      last.asked_by != running_query)
    raise_asked_twice(filter);
  look_at_askers(filter);
  last.asked_in = running_statement;
  last.asked_by = running_query;
  last.asked_at = trigger_depth();
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
  judge->own.context = AllocSetContextCreate(parent, "streamfilter trigger", ALLOCSET_SMALL_SIZES);
}

void resolve_judge(RowJudge* judge) {
  RowJudge::Found* found = &judge->found;
  judge->keys.filter = nullptr;
  found->lasts = false;
  MemoryContextReset(judge->own.context);
  MemoryContext caller = MemoryContextSwitchTo(judge->own.context);
  // Count first: a change during the look-up then forces another look for the next row.
  found->watch = watch_table(RelationGetRelid(judge->row.table));
  found->changes = found->watch->changes;
  DeclaredTrigger declared = find_declared(judge->row.trigger, judge->row.table);
  found->declared = watch_table(declared.table);
  found->declared_changes = found->declared->changes;
  found->replication_role = SessionReplicationRole;
  found->trigger = judge->row.trigger->tgoid;
  found->owner = declared.owner;

  check_is_last(judge->row.trigger, triggers_of(judge), judge->row.table, ERROR);
  const TriggerBinding binding = bind_and_lock(judge, &declared);
  found->created = is_on_shard(judge->row.trigger, &declared)
                       ? binding.filter
                       : find_parent_trigger(judge, &declared, binding);
  found->target = binding.target;
  FilterHandle* filter = filter_handle(binding.filter);
  // The last call before the row is judged: a further one might replace what the plan refers to.
  use_filter(filter, Use::judge_granted);
  found->counts = pending_trigger_counts(found->trigger, filter->relid);
  found->plan = make_plan(judge->row.trigger, judge->own.kind, judge->row.table, filter->relation);
  found->key_indexes =
      found->plan->skips_conflicts ? find_key_indexes(judge->row.table, found->plan) : NIL;
  judge->keys = make_key_builder(filter, found->plan->inputs, found->plan->count);
  found->route = route_of_keys(judge);
  found->lasts = lasts(judge, declared);
  MemoryContextSwitchTo(caller);
}

void check_conflicts(RowJudge* judge, const ResultRelInfo* target) {
  if (judge->statement.checked_version == judge->keys.version &&
      judge->statement.checked_changes == judge->found.changes + 1)
    return;
  check_conflict_target(target, judge->row.trigger, judge->found.plan);
  judge->statement.checked_version = judge->keys.version;
  judge->statement.checked_changes = judge->found.changes + 1;
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

namespace {

// ---- what a statement has found -----------------------------------------------------------------

// Judges are kept for later statements: with one row per statement, resolving costs most of the
// time.
constexpr Oid kPlaces = 16;

struct KeptJudge {
  RowJudge judge;
  bool lent;
};
KeptJudge kept[kPlaces];

void give_back(void* place) {
  const NoRaise marked;
  static_cast<KeptJudge*>(place)->lent = false;
}

// The borrowing statement may call code that fires the same trigger in another statement.
KeptJudge* lend(const Trigger* trigger, MemoryContext of_statement) {
  KeptJudge* place = &kept[trigger->tgoid % kPlaces];
  if (place->lent) return nullptr;
  auto* back = static_cast<MemoryContextCallback*>(
      MemoryContextAlloc(of_statement, sizeof(MemoryContextCallback)));
  *back = {give_back, place, nullptr};
  MemoryContextRegisterResetCallback(of_statement, back);
  place->lent = true;
  return place;
}

// Lends a judge to the statement that fires the trigger, until that statement's memory is freed.
// Call prepare_judge() before use.
RowJudge* borrow_judge(const TriggerData* call, TriggerKind kind, const RowSource& source,
                       MemoryContext of_statement) {
  RowJudge* judge;
  if (KeptJudge* place = lend(call->tg_trigger, of_statement)) {
    judge = &place->judge;
    if (judge->own.context == nullptr)
      init_row_judge(judge, kind, source.statement, CacheMemoryContext);
  } else {
    judge = static_cast<RowJudge*>(MemoryContextAllocZero(of_statement, sizeof(RowJudge)));
    init_row_judge(judge, kind, source.statement, of_statement);
  }
  set_judge_kind(judge, kind);
  const TriggerDesc* triggers = source.target == nullptr ? nullptr : source.target->ri_TrigDesc;
  judge->statement = {source.statement, source.outside, triggers, 0, 0};
  FilterHandle*& filter = judge->keys.filter;
  if (!judge->found.lasts || source.outside || (filter != nullptr && !is_loaded(filter)))
    filter = nullptr;
  return judge;
}

// Kept in fn_extra: one for each table (partition) that a statement inserts into.
struct FiringState {
  RowSource source;
  bool plain;           // each row is inserted, and nothing else can become of it
  bool exists_already;  // existing rows: they pass, and the filter learns their keys
  RowJudge* judge;
};

FiringState* begin_firing(FunctionCallInfo fcinfo, const TriggerData* call, TriggerKind kind) {
  kUpwardCalls.on_first_row(call->tg_relation);
  require_shared_state();  // without shared state there are no hooks, either
  auto* state = static_cast<FiringState*>(
      MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FiringState)));
  state->source = find_row_source(call);
  state->plain = state->source.merge == nullptr && state->source.cause == InsertCause::inserted;
  state->exists_already = exist_already(call, state->source.statement, state->source.outside);
  state->judge = borrow_judge(call, kind, state->source, fcinfo->flinfo->fn_mcxt);
  fcinfo->flinfo->fn_extra = state;
  return state;
}

// ---- one row ------------------------------------------------------------------------------------

bool is_row_insert(FunctionCallInfo fcinfo) {
  return CALLED_AS_TRIGGER(fcinfo) &&
         (reinterpret_cast<const TriggerData*>(fcinfo->context)->tg_event &
          (TRIGGER_EVENT_OPMASK | TRIGGER_EVENT_ROW | TRIGGER_EVENT_TIMINGMASK)) ==
             (TRIGGER_EVENT_INSERT | TRIGGER_EVENT_ROW | TRIGGER_EVENT_BEFORE);
}

[[noreturn]] void raise_wrong_call(FunctionCallInfo fcinfo, TriggerKind kind) {
  if (!CALLED_AS_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("%s can only be called as a trigger", function_name(kind)));
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  raise_wrong_event(call->tg_trigger, kind, call->tg_relation);
}

[[noreturn]] void raise_on_conflict(const TriggerData* call, TriggerKind kind) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("cannot use INSERT ... ON CONFLICT DO UPDATE with trigger \"%s\" of table \"%s\"",
                 call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation)),
          errdetail("The row may not be inserted after all, but the filter would remember it."),
          kind == TriggerKind::discard
              ? errhint("Leave out ON CONFLICT (the trigger discards repeats), or insert while "
                        "the trigger is disabled.")
              : errhint("Leave out ON CONFLICT, or insert while the trigger is disabled."));
  pg_unreachable();
}

[[noreturn]] void raise_unclear(const TriggerData* call, InsertCause cause) {
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("trigger \"%s\" cannot tell whether a row is new in partition \"%s\" or moved there",
             call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation)),
      cause == InsertCause::unclear_replication
          ? errdetail("Logical replication does not tell inserted rows from updated ones that "
                      "change their partition.")
          : errdetail("It comes neither from the server's own executor nor from COPY, so that "
                      "nothing says how."),
      cause == InsertCause::unclear_replication
          ? errhint("Let the trigger fire where rows are first inserted, on the publisher, or "
                    "replicate into a table without partitions.")
          : errhint("Use a plain INSERT, or insert while the trigger is disabled."));
  pg_unreachable();
}

// Existing rows pass. Rows of unknown origin, and rows that may not be inserted after all, cannot
// be judged.
pg_noinline void check_cause(const FiringState* state, InsertCause cause, const TriggerData* call,
                             TriggerKind kind) {
  if (cause == InsertCause::inserted) return;
  if (cause == InsertCause::on_conflict) raise_on_conflict(call, kind);
  if (cause != InsertCause::unless_conflict) raise_unclear(call, cause);
  check_conflicts(state->judge, state->source.target);
}

// Remembers the key of an existing row without judging it.
pg_noinline HeapTuple learn(const RowJudge* judge, const TriggerData* call) {
  Element element;
  if (build_element(&judge->keys, call->tg_trigslot, &element)) {
    bound_time(judge->keys.filter, &element);
    judge_key(judge->keys.filter, element, Intent::learn);
  }
  return call->tg_trigtuple;
}

// A row comes: is it one to judge, and by what? Then its key is given to the filter, and the answer
// decides what becomes of the row. nullptr: it is not inserted.
HeapTuple fire(FunctionCallInfo fcinfo, TriggerKind kind) {
  if (unlikely(!is_row_insert(fcinfo))) raise_wrong_call(fcinfo, kind);
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  if (!enabled) return call->tg_trigtuple;
  auto* state = static_cast<FiringState*>(fcinfo->flinfo->fn_extra);
  if (unlikely(state == nullptr)) state = begin_firing(fcinfo, call, kind);
  const InsertCause cause = likely(state->plain) ? InsertCause::inserted : cause_of(state->source);
  if (cause == InsertCause::moved) return call->tg_trigtuple;
  RowJudge* judge = state->judge;
  judge->row = {call->tg_trigger, call->tg_relation};
  prepare_judge(judge);
  FilterHandle* filter = judge->keys.filter;
  if (is_restored(call->tg_relation, state->source.statement, filter)) return call->tg_trigtuple;
  const FilterMode mode = filter->mode;
  if (unlikely(mode == FilterMode::off)) return call->tg_trigtuple;
  if (unlikely(state->exists_already)) return learn(judge, call);
  if (unlikely(!state->plain)) check_cause(state, cause, call, kind);
  check_judged_once(judge);

  const Outcome outcome = of_repeats(judge);
  Element element;
  bool repeat = false;
  if (build_element(&judge->keys, call->tg_trigslot, &element)) {
    bound_time(filter, &element);
    repeat = judge_key(filter, element, Intent::insert, outcome) != Verdict::fresh;
  }
  count_judged(judge, repeat, outcome);
  const bool passes = !repeat || kind == TriggerKind::mark || mode == FilterMode::shadow;
  const bool skipped = passes && is_skipped(judge, call->tg_trigslot);
  if (unlikely(mode == FilterMode::shadow)) return skipped ? nullptr : call->tg_trigtuple;
  if (kind == TriggerKind::divert && (repeat || skipped))
    divert_row(call, judge->found.target, judge->found.owner, filter);
  if (skipped) return nullptr;
  if (kind == TriggerKind::mark)
    return set_mark(judge, call->tg_trigslot, call->tg_trigtuple, repeat);
  return repeat ? nullptr : call->tg_trigtuple;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_discard(filter [, column …]): BEFORE INSERT FOR EACH ROW. Discards rows whose key
// was (probably) seen before.
SF_FUNCTION(streamfilter_discard) { return PointerGetDatum(fire(fcinfo, TriggerKind::discard)); }

// streamfilter_divert(filter, table [, column …]): BEFORE INSERT FOR EACH ROW. Puts rows whose key
// was (probably) seen before into another table.
SF_FUNCTION(streamfilter_divert) { return PointerGetDatum(fire(fcinfo, TriggerKind::divert)); }

// streamfilter_mark(filter, mark [, column …]): BEFORE INSERT FOR EACH ROW. Sets the boolean column
// `mark` to whether the row's key was (probably) seen before.
SF_FUNCTION(streamfilter_mark) { return PointerGetDatum(fire(fcinfo, TriggerKind::mark)); }
