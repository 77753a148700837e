// streamfilter_discard, streamfilter_mark and streamfilter_divert, row by row.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/tuptable.h"
}

#include "pg/handle/event_time.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/shmem/trigger_counts.hpp"
#include "pg/trigger/quarantine.hpp"
#include "pg/trigger/row_source.hpp"
#include "pg/trigger/table_watch.hpp"
#include "pg/trigger/trigger_binding.hpp"
#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {
namespace {

// ---- what a statement has resolved -------------------------------------------------------------

// Kept in fn_extra: one for each table (partition) that a statement inserts into.
struct FiringState {
  RowSource source;
  MemoryContext context;  // of what follows
  Oid trigger;
  Oid created;  // the trigger that CREATE TRIGGER made, if this one is a clone
  Oid owner;    // who answers for it
  Oid target;   // where repeats are diverted to, if it does that
  int replication_role;
  const TableWatch* table;
  uint64 table_changes;
  const TableWatch* origin;
  uint64 origin_changes;
  TriggerPlan* plan;
  TriggerTally* tally;
  KeyBuilder keys;  // without a filter: nothing is resolved
};

bool is_resolved(const FiringState* state, const Trigger* trigger) {
  return is_current(&state->keys) && state->trigger == trigger->tgoid &&
         state->replication_role == SessionReplicationRole &&
         state->table_changes == state->table->changes &&
         state->origin_changes == state->origin->changes;
}

TriggerBinding lock_both(const Trigger* trigger, TriggerKind kind, const TriggerOrigin* origin) {
  const Oid filter = lock_filter(trigger, kind, origin, RowExclusiveLock, ERROR);
  return {filter, kind == TriggerKind::divert
                      ? lock_target(trigger, origin, RowExclusiveLock, ERROR)
                      : InvalidOid};
}

// The filter and the table for repeats, locked. From now on the trigger is bound to them.
TriggerBinding bind_and_lock(const Trigger* trigger, TriggerKind kind, TriggerOrigin* origin) {
  const TriggerBinding binding = lock_both(trigger, kind, origin);
  if (OidIsValid(origin->binding.filter)) return binding;
  origin->binding = bind_when_fired(origin->trigger, origin->table, binding);
  return lock_both(trigger, kind, origin);
}

void resolve(FiringState* state, const TriggerData* call, TriggerKind kind) {
  const Trigger* trigger = call->tg_trigger;
  Relation table = call->tg_relation;
  state->keys.filter = nullptr;
  MemoryContextReset(state->context);
  MemoryContext caller = MemoryContextSwitchTo(state->context);
  // Counts first: what changes while we look makes the next row look again.
  state->table = watch_table(RelationGetRelid(table));
  state->table_changes = state->table->changes;
  TriggerOrigin origin = find_origin(trigger, table);
  state->origin = watch_table(origin.table);
  state->origin_changes = state->origin->changes;
  state->replication_role = SessionReplicationRole;
  state->trigger = trigger->tgoid;
  state->created = origin.trigger;
  state->owner = origin.owner;

  check_is_last(trigger, table, ERROR);
  const TriggerBinding binding = bind_and_lock(trigger, kind, &origin);
  state->target = binding.target;
  FilterHandle* filter = filter_handle(binding.filter);
  // The last time before the row is judged: another call might replace what the plan refers to.
  use_filter(filter, Use::judge_granted);
  state->tally = trigger_tally(trigger->tgoid, filter->relid);
  state->plan = make_plan(trigger, kind, table, filter->relation);
  state->keys = make_key_builder(filter, state->plan->inputs, state->plan->count);
  MemoryContextSwitchTo(caller);
}

// Ready to judge: everything is resolved, locked and attached.
void prepare(FiringState* state, const TriggerData* call, TriggerKind kind) {
  if (likely(state->keys.filter != nullptr)) use_filter(state->keys.filter, Use::judge_granted);
  if (unlikely(!is_resolved(state, call->tg_trigger))) resolve(state, call, kind);
  check_mode(state->keys.filter, state->owner);
}

FiringState* state_of(FunctionCallInfo fcinfo, const TriggerData* call) {
  auto* state = static_cast<FiringState*>(fcinfo->flinfo->fn_extra);
  if (likely(state != nullptr)) return state;
  require_shared_state();  // without it there are no hooks, either
  state = static_cast<FiringState*>(
      MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FiringState)));
  state->context =
      AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "streamfilter trigger", ALLOCSET_SMALL_SIZES);
  state->source = find_row_source(call);
  fcinfo->flinfo->fn_extra = state;
  return state;
}

// ---- one row -----------------------------------------------------------------------------------

const TriggerData* check_call(FunctionCallInfo fcinfo, TriggerKind kind) {
  const char* function = function_name(kind);
  if (!CALLED_AS_TRIGGER(fcinfo))
    ereport(ERROR, errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
            errmsg("%s can only be called as a trigger", function));
  const auto* call = reinterpret_cast<const TriggerData*>(fcinfo->context);
  if (!TRIGGER_FIRED_BEFORE(call->tg_event) || !TRIGGER_FIRED_FOR_ROW(call->tg_event) ||
      !TRIGGER_FIRED_BY_INSERT(call->tg_event))
    raise_wrong_event(call->tg_trigger, kind, call->tg_relation);
  return call;
}

[[noreturn]] void raise_on_conflict(const TriggerData* call, TriggerKind kind) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("cannot use INSERT ... ON CONFLICT with trigger \"%s\" of table \"%s\"",
                 call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation)),
          errdetail("The row may not be inserted after all, but the filter would remember it."),
          kind == TriggerKind::discard
              ? errhint("Leave out ON CONFLICT (the trigger discards repeats), or insert while "
                        "the trigger is disabled.")
              : errhint("Leave out ON CONFLICT, or insert while the trigger is disabled."));
  pg_unreachable();
}

[[noreturn]] void raise_unclear(const TriggerData* call, Arrival arrival) {
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("trigger \"%s\" cannot tell whether a row is new in partition \"%s\" or moved there",
             call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation)),
      arrival == Arrival::unclear_replication
          ? errdetail("Logical replication does not tell inserted rows from updated ones that "
                      "change their partition.")
          : errdetail("It comes neither from the server's own executor nor from COPY, so that "
                      "nothing says how."),
      arrival == Arrival::unclear_replication
          ? errhint("Let the trigger fire where rows are first inserted, on the publisher, or "
                    "replicate into a table without partitions.")
          : errhint("Use a plain INSERT, or insert while the trigger is disabled."));
  pg_unreachable();
}

[[noreturn]] void raise_judged_twice(const FiringState* state, const TriggerData* call) {
  const bool asked = state->keys.filter->asked_in >= state->source.statement;
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", state->keys.filter->relation->name),
          asked
              ? errdetail("The statement gives it keys by streamfilter_seen() or INSERT, which it "
                          "remembers; trigger \"%s\" of table \"%s\" would then take their rows "
                          "for repeats.",
                          call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation))
              : errdetail("The statement puts rows into another table whose trigger uses it, too; "
                          "trigger \"%s\" of table \"%s\" would take the same rows for repeats.",
                          call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation)),
          asked ? errhint("Leave it to the trigger, or to the query while the trigger is disabled.")
                : errhint("Give the two tables different filters, or use two statements."));
  pg_unreachable();
}

[[noreturn]] void raise_diverted_twice(const FilterHandle* filter, const TriggerData* call) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("filter \"%s\" would judge a row twice", filter->relation->name),
          errdetail("It has called the row a repeat, which is being diverted; trigger \"%s\" of "
                    "table \"%s\" would take it for one again.",
                    call->tg_trigger->tgname, RelationGetRelationName(call->tg_relation)),
          errhint("Divert repeats to a table without such a trigger."));
  pg_unreachable();
}

// One row, one verdict: nothing that this statement does may have given the filter its key.
void check_judged_once(const FiringState* state, const TriggerData* call) {
  FilterHandle* filter = state->keys.filter;
  if (unlikely(is_diverting(filter))) raise_diverted_twice(filter, call);
  const uint64 statement = state->source.statement;
  if (unlikely(statement == 0)) return;
  if (unlikely(filter->asked_in >= statement || filter->fired_in > statement ||
               (filter->fired_in == statement && filter->fired_by != state->created)))
    raise_judged_twice(state, call);
  filter->fired_in = statement;
  filter->fired_by = state->created;
}

// A row that exists already passes; one of which nothing is known, or that may not be inserted
// after all, cannot be judged.
void check_arrival(Arrival arrival, const TriggerData* call, TriggerKind kind) {
  if (likely(arrival == Arrival::inserted)) return;
  if (arrival == Arrival::on_conflict) raise_on_conflict(call, kind);
  raise_unclear(call, arrival);
}

// Was the key of this row seen before? It is remembered now. In per-row memory. False: it has none.
bool judge(const FiringState* state, TupleTableSlot* row, bool* repeat) {
  Element element;
  *repeat = false;
  if (!build_element(&state->keys, row, &element)) return false;
  bound_time(state->keys.filter, &element);
  *repeat = test_and_insert_key(state->keys.filter, element);
  return true;
}

HeapTuple set_mark(const TriggerData* call, AttrNumber column, bool repeat) {
  bool isnull;
  const Datum old = slot_getattr(call->tg_trigslot, column, &isnull);
  if (!isnull && DatumGetBool(old) == repeat) return call->tg_trigtuple;
  int number = column;
  Datum value = BoolGetDatum(repeat);
  bool null = false;
  return heap_modify_tuple_by_cols(call->tg_trigtuple, RelationGetDescr(call->tg_relation), 1,
                                   &number, &value, &null);
}

// Counts a row that was judged, if it has a key, and what becomes of it.
void count(const FiringState* state, TriggerKind kind, bool has_key, bool repeat, bool shadow) {
  TriggerCounts* counts = counts_to_add_to(state->tally);
  const bool diverts = kind == TriggerKind::divert;
  ++counts->rows;
  (shadow ? counts->would_discard : diverts ? counts->diverted : counts->discarded) += repeat;
  if (!has_key || (!shadow && kind == TriggerKind::discard)) return;
  count_outcome(state->keys.filter, repeat,
                shadow    ? Outcome::would_discard
                : diverts ? Outcome::diverted
                          : Outcome::marked);
}

HeapTuple fire(FunctionCallInfo fcinfo, TriggerKind kind) {
  const TriggerData* call = check_call(fcinfo, kind);
  if (!enabled) return call->tg_trigtuple;
  if (unlikely(fcinfo->flinfo->fn_extra == nullptr)) on_first_row();
  FiringState* state = state_of(fcinfo, call);
  const Arrival arrival = arrival_of(state->source);
  if (arrival == Arrival::moved) return call->tg_trigtuple;
  prepare(state, call, kind);
  const FilterMode mode = state->keys.filter->mode;
  if (unlikely(mode == FilterMode::off)) return call->tg_trigtuple;
  check_arrival(arrival, call, kind);
  check_judged_once(state, call);
  bool repeat;
  const bool has_key = judge(state, call->tg_trigslot, &repeat);
  count(state, kind, has_key, repeat, mode == FilterMode::shadow);
  if (unlikely(mode == FilterMode::shadow)) return call->tg_trigtuple;
  if (kind == TriggerKind::mark) return set_mark(call, state->plan->mark, repeat);
  if (!repeat) return call->tg_trigtuple;
  if (kind == TriggerKind::divert)
    divert_row(call, state->target, state->owner, state->keys.filter);
  return nullptr;
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
