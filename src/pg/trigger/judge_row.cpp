// streamfilter_discard, streamfilter_mark and streamfilter_divert, row by row.
#include "pg/server/postgres.hpp"

#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/judge_state.hpp"
#include "pg/trigger/judged_once.hpp"

namespace streamfilter::pg {
namespace {

// ---- judges that outlast their statement --------------------------------------------------------

// Keeps what a statement has resolved of a trigger for later statements. With one row per
// statement, resolving costs most of the time.

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
// Call prepare() before use.
RowJudge* borrow_judge(const Trigger* trigger, TriggerKind kind, uint64 statement, bool outside,
                       MemoryContext of_statement) {
  RowJudge* judge;
  if (KeptJudge* place = lend(trigger, of_statement)) {
    judge = &place->judge;
    if (judge->context == nullptr) init_row_judge(judge, kind, statement, CacheMemoryContext);
  } else {
    judge = static_cast<RowJudge*>(MemoryContextAllocZero(of_statement, sizeof(RowJudge)));
    init_row_judge(judge, kind, statement, of_statement);
  }
  set_kind(judge, kind);
  judge->statement = statement;
  judge->outside = outside;
  judge->checked_changes = 0;  // that was another statement's conflict target
  FilterHandle*& filter = judge->keys.filter;
  if (!judge->lasts || outside || (filter != nullptr && !is_loaded(filter))) filter = nullptr;
  return judge;
}

// ---- what a statement has resolved -------------------------------------------------------------

// Kept in fn_extra: one for each table (partition) that a statement inserts into.
struct FiringState {
  RowSource source;
  bool plain;           // each row is inserted, and nothing else can become of it
  bool exists_already;  // existing rows: they pass, and the filter learns their keys
  RowJudge* judge;
};

FiringState* state_of(FunctionCallInfo fcinfo, const TriggerData* call, TriggerKind kind) {
  auto* state = static_cast<FiringState*>(fcinfo->flinfo->fn_extra);
  if (likely(state != nullptr)) return state;
  require_shared_state();  // without shared state there are no hooks, either
  state = static_cast<FiringState*>(
      MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FiringState)));
  state->source = find_row_source(call);
  state->plain = state->source.merge == nullptr && state->source.cause == InsertCause::inserted;
  state->exists_already = exist_already(call, state->source.statement, state->source.outside);
  state->judge = borrow_judge(call->tg_trigger, kind, state->source.statement,
                              state->source.outside, fcinfo->flinfo->fn_mcxt);
  const ResultRelInfo* target = state->source.target;
  state->judge->triggers = target == nullptr ? nullptr : target->ri_TrigDesc;
  fcinfo->flinfo->fn_extra = state;
  return state;
}

// ---- one row -----------------------------------------------------------------------------------

const TriggerData* check_call(FunctionCallInfo fcinfo, TriggerKind kind) {
  if (!CALLED_AS_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("%s can only be called as a trigger", function_name(kind)));
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  if (!TRIGGER_FIRED_BEFORE(call->tg_event) || !TRIGGER_FIRED_FOR_ROW(call->tg_event) ||
      !TRIGGER_FIRED_BY_INSERT(call->tg_event))
    raise_wrong_event(call->tg_trigger, kind, call->tg_relation);
  return call;
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
void check_cause(InsertCause cause, const TriggerData* call, TriggerKind kind) {
  if (cause == InsertCause::inserted || cause == InsertCause::unless_conflict) return;
  if (cause == InsertCause::on_conflict) raise_on_conflict(call, kind);
  raise_unclear(call, cause);
}

// Is the row a repeat? Remembers its key. Uses per-row memory.
bool judge(const RowJudge* judge, TupleTableSlot* row) {
  const Outcome outcome = of_repeats(judge);
  Element element;
  const bool repeat = make_element(judge, row, &element) &&
                      test_and_insert_key(judge->keys.filter, element, outcome);
  count_judged(judge, repeat, outcome);
  return repeat;
}

// Remembers the key of an existing row without judging it.
HeapTuple learn(const RowJudge* judge, const TriggerData* call) {
  Element element;
  if (make_element(judge, call->tg_trigslot, &element)) learn_key(judge->keys.filter, element);
  return call->tg_trigtuple;
}

HeapTuple fire(FunctionCallInfo fcinfo, TriggerKind kind) {
  const TriggerData* call = check_call(fcinfo, kind);
  if (!enabled) return call->tg_trigtuple;
  if (unlikely(fcinfo->flinfo->fn_extra == nullptr)) kUpwardCalls.on_first_row(call->tg_relation);
  FiringState* state = state_of(fcinfo, call, kind);
  const InsertCause cause = likely(state->plain) ? InsertCause::inserted : cause_of(state->source);
  if (is_restored(call->tg_relation, state->source.statement)) return call->tg_trigtuple;
  if (cause == InsertCause::moved) return call->tg_trigtuple;
  RowJudge* of_table = state->judge;
  of_table->trigger = call->tg_trigger;
  of_table->table = call->tg_relation;
  prepare_judge(of_table);
  const FilterMode mode = of_table->keys.filter->mode;
  if (unlikely(mode == FilterMode::off)) return call->tg_trigtuple;
  if (unlikely(state->exists_already)) return learn(of_table, call);
  if (unlikely(!state->plain)) check_cause(cause, call, kind);
  if (unlikely(cause == InsertCause::unless_conflict))
    check_conflicts(of_table, state->source.target);
  check_judged_once(of_table);
  const bool repeat = judge(of_table, call->tg_trigslot);
  const bool passes = !repeat || kind == TriggerKind::mark || mode == FilterMode::shadow;
  const bool skipped = passes && is_skipped(of_table, call->tg_trigslot);
  if (unlikely(mode == FilterMode::shadow)) return skipped ? nullptr : call->tg_trigtuple;
  if (kind == TriggerKind::divert && (repeat || skipped))
    divert_row(call, of_table->target, of_table->owner, of_table->keys.filter);
  if (skipped) return nullptr;
  if (kind == TriggerKind::mark)
    return set_mark(of_table, call->tg_trigslot, call->tg_trigtuple, repeat);
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
