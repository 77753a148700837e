// streamfilter_discard, streamfilter_mark and streamfilter_divert, row by row.
#include "pg/server/postgres.hpp"

#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/trigger/row_fate.hpp"

namespace streamfilter::pg {
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
  call_on_reset(of_statement, give_back, place);
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
    judge = allocate_zeros<RowJudge>(1, of_statement);
    init_row_judge(judge, kind, source.statement, of_statement);
  }
  set_judge_kind(judge, kind);
  const TriggerDesc* triggers = source.target == nullptr ? nullptr : source.target->ri_TrigDesc;
  judge->statement = {source.statement, source.outside, triggers, RowJudge::OfStatement::unknown};
  FilterHandle*& filter = judge->keys.filter;
  if (!judge->found.lasts || source.outside || (filter != nullptr && !is_loaded(filter)))
    filter = nullptr;
  return judge;
}

// Kept in fn_extra: one for each table (partition) that a statement inserts into.
struct FiringState {
  RowSource source;
  bool plain;           // each row is inserted, and nothing else can become of it
  bool has_rule;        // `fates` is known
  bool exists_already;  // existing rows: they pass, and the filter learns their keys
  RowJudge* judge;
  FateRule* fates;  // of passing rows; nullptr: they are stored
};

FiringState* begin_firing(FunctionCallInfo fcinfo, const TriggerData* call, TriggerKind kind) {
  kUpwardCalls.on_first_row(call->tg_relation);
  require_shared_state();  // without shared state there are no hooks, either
  auto* state = allocate_zeros<FiringState>(1, fcinfo->flinfo->fn_mcxt);
  state->source = find_row_source(call);
  state->plain = state->source.merge == nullptr && state->source.cause == InsertCause::inserted &&
                 !is_fate_open(call, state->source);
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
}

// A rule lasts as long as its filter's definition, which nobody can alter meanwhile.
pg_noinline void find_fates(FiringState* state, FunctionCallInfo fcinfo) {
  const InContext context(fcinfo->flinfo->fn_mcxt);
  state->fates = find_fate_rule(state->judge, state->source);
  state->has_rule = true;
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
template <bool kPlain>
[[gnu::always_inline]] inline HeapTuple fire_row(FiringState* state, FunctionCallInfo fcinfo,
                                                 const TriggerData* call, TriggerKind kind) {
  const InsertCause cause = kPlain ? InsertCause::inserted : cause_of(state->source);
  if (cause == InsertCause::moved) return call->tg_trigtuple;
  RowJudge* judge = state->judge;
  judge->row = {call->tg_trigger, call->tg_relation};
  prepare_judge(judge);
  FilterHandle* filter = judge->keys.filter;
  if (is_restored(call->tg_relation, state->source.statement, filter)) return call->tg_trigtuple;
  const FilterMode mode = filter->mode;
  if (unlikely(mode == FilterMode::off)) return call->tg_trigtuple;
  if (unlikely(state->exists_already)) return learn(judge, call);
  if (!kPlain) {
    if (cause != InsertCause::inserted) raise_unclear(call, cause);
    if (!state->has_rule) find_fates(state, fcinfo);
  }
  check_judged_once(judge);

  const Outcome outcome = of_repeats(judge);
  Element element;
  bool repeat = false;
  const bool has_key = build_element(&judge->keys, call->tg_trigslot, &element);
  if (has_key) {
    bound_time(filter, &element);
    repeat = judge_key(filter, element, Intent::insert, outcome) != Verdict::fresh;
  } else {
    count_row(filter, RowCount::null_keys);
  }
  count_judged(judge, 1, repeat, outcome);
  if (repeat && notes_dropped(judge)) note_dropped(judge, element);
  const bool passes = !repeat || kind == TriggerKind::mark || mode == FilterMode::shadow;
  const bool skipped = passes && is_skipped(judge, call->tg_trigslot);
  if (!kPlain && state->fates != nullptr && passes && !skipped)
    await_fate(state->fates, judge, call, has_key ? &element : nullptr, has_key && !repeat);
  if (unlikely(mode == FilterMode::shadow)) return skipped ? nullptr : call->tg_trigtuple;
  if (kind == TriggerKind::divert && (repeat || skipped))
    divert_row(call, judge->found.target, judge->found.owner, filter);
  if (skipped) return nullptr;
  if (kind == TriggerKind::mark)
    return set_mark(judge, call->tg_trigslot, call->tg_trigtuple, repeat);
  return repeat ? nullptr : call->tg_trigtuple;
}

pg_noinline HeapTuple fire_on_other_row(FiringState* state, FunctionCallInfo fcinfo,
                                        const TriggerData* call, TriggerKind kind) {
  return fire_row<false>(state, fcinfo, call, kind);
}

HeapTuple fire(FunctionCallInfo fcinfo, TriggerKind kind) {
  if (unlikely(!is_row_insert(fcinfo))) raise_wrong_call(fcinfo, kind);
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  if (!enabled) return call->tg_trigtuple;
  auto* state = static_cast<FiringState*>(fcinfo->flinfo->fn_extra);
  if (unlikely(state == nullptr)) state = begin_firing(fcinfo, call, kind);
  return likely(state->plain) ? fire_row<true>(state, fcinfo, call, kind)
                              : fire_on_other_row(state, fcinfo, call, kind);
}

}  // namespace

// streamfilter_discard(filter [, column …]): BEFORE INSERT FOR EACH ROW. Discards rows whose key
// was (probably) seen before.
SF_FUNCTION(streamfilter_discard) { return PointerGetDatum(fire(fcinfo, TriggerKind::discard)); }

// streamfilter_divert(filter, table [, column …]): BEFORE INSERT FOR EACH ROW. Puts rows whose key
// was (probably) seen before into another table.
SF_FUNCTION(streamfilter_divert) { return PointerGetDatum(fire(fcinfo, TriggerKind::divert)); }

// streamfilter_mark(filter, mark [, column …]): BEFORE INSERT FOR EACH ROW. Sets the boolean column
// `mark` to whether the row's key was (probably) seen before.
SF_FUNCTION(streamfilter_mark) { return PointerGetDatum(fire(fcinfo, TriggerKind::mark)); }

}  // namespace streamfilter::pg
