// streamfilter_stats, streamfilter_tree, streamfilter_slices: definition, state and counters of
// every filter of the database, of trees, and of slices on other servers; streamfilter_memory.
#include "pg/server/postgres.hpp"

#include <iterator>
#include <numeric>

#include "core/base/math_policy.hpp"
#include "core/filter/resize.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/citus/citus_ddl.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/rows.hpp"
#include "pg/shmem/loss_estimate.hpp"
#include "pg/sql/stats_view.hpp"
#include "pg/storage/image.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/value/value.hpp"

namespace streamfilter::pg {
namespace {

struct Numbers {
  bool exists = false;  // there is state in shared memory
  uint64 resident = 0;  // bytes of its block
  uint64 dynamic = 0;   // these, in dynamic memory
  uint64 in_flight = 0;
  RowCounts counts;
  double lost = 0;  // NaN: not known
  Totals totals{};
  double fpr_bound = 0;
  bool overfull = false;
  bool clock_went_back = false;
  TimestampTz created = 0, last_reset = 0, last_saved = 0, restored = 0, stats_reset = 0;
  char set_aside[sizeof FilterSlot::set_aside] = "";
  const char* loaded = "loaded";
};

void read_state(Numbers& numbers, FilterSlot* slot, const FilterRelation* relation) {
  const Parameters& parameters = relation->definition.parameters;
  numbers.exists = true;
  numbers.resident = slot->size;
  numbers.dynamic = is_dynamic(slot) ? slot->size : 0;
  numbers.in_flight = count_in_flight(slot) + pg_atomic_read_u64(&slot->unfinished.unregistered);
  numbers.created = time_in(slot->stats.created);
  numbers.last_reset = time_in(slot->stats.last_reset);
  numbers.last_saved = slot->saved.last_saved;
  numbers.restored = slot->saved.restored;
  strlcpy(numbers.set_aside, slot->set_aside, sizeof numbers.set_aside);
  numbers.clock_went_back = pg_atomic_read_u64(&slot->ahead_of_clock) != 0;
  numbers.totals = read_totals(slot, parameters);
  constexpr const char* kEmpty[] = {"loaded (new)", "loaded (truncated)",
                                    "loaded (lost with its server)"};
  if (is_whole(slot) && numbers.totals.insertions == 0)
    numbers.loaded = kEmpty[static_cast<int>(slot->why_empty)];
  const OverfullLimit limit = overfull_limit(parameters, promised_fpr_of(relation));
  numbers.overfull = is_overfull(block_of(slot), limit);
  numbers.fpr_bound =
      fpr_bound(block_of(slot), discards_overfull(relation) ? OverfullLimit{} : limit);
}

Numbers read_numbers(const FilterRelation* relation) {
  Numbers numbers;
  if (is_remote(relation)) {  // its servers have its state
    const FilterWork work = read_filter_work(relation->relid);
    numbers.counts = work.counts;
    numbers.stats_reset = work.since;
    numbers.lost = NAN;
    numbers.totals.estimate = {NAN, NAN, NAN};
    return numbers;
  }
  if (shared_state == nullptr) return numbers;
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  if (FilterSlot* slot = slot_with_counts(relation)) {
    numbers.counts = slot->stats.counts.read();
    numbers.lost = lost_rows(slot);
    numbers.stats_reset = time_in(slot->stats.stats_reset);
    if (slot->state != SlotState::counted) read_state(numbers, slot, relation);
  }
  return numbers;
}

// A whole number; NULL if it is not known or has no limit.
void put_estimate(NamedRow& row, const char* name, double value) {
  if (std::isfinite(value) && value < 9.2e18)
    row.put_count(name, saturate<uint64>(std::round(value)));
}

// Where the state is; nullptr: nowhere, or on other servers.
const char* describe_state(const FilterRelation* relation, const Numbers& numbers) {
  if (numbers.set_aside[0] != '\0') return psprintf("set aside: %s", numbers.set_aside);
  if (numbers.exists) return numbers.clock_went_back ? "clock went back" : numbers.loaded;
  return !is_remote(relation) && is_anything_saved(relation->relid) ? "saved" : nullptr;
}

void fill_row(NamedRow& row, const FilterRelation* relation) {
  const Parameters& parameters = relation->definition.parameters;
  flush_counters();
  resolve_prepared(relation->relid);
  const Numbers numbers = read_numbers(relation);
  const FilterOps* ops = find_ops(parameters.kind);
  TextBuffer json;
  append_parameters_json(&json, parameters, relation->definition.reason,
                         relation->is_adopted ? &relation->derived_now : nullptr);
  row.put("kind", ops->name);
  row.put("mode", name_of(relation->options.mode));
  row.put("params", json_to_jsonb(json.data));
  row.put_count("memory", parameters.memory);
  row.put_count("dynamic_memory", numbers.dynamic);
  if (numbers.exists) row.put_count("resident", numbers.resident);
  row.put_counts(numbers.counts, is_remote(relation));
  row.put_count("in_flight", numbers.in_flight);
  row.put_rate("lost_estimate", numbers.lost);
  // A state that was not yet restored has unknown contents.
  const bool known = numbers.exists || is_remote(relation) || !is_anything_saved(relation->relid);
  const Estimate now = known ? numbers.totals.estimate : Estimate{NAN, NAN, NAN};
  row.put_rate("fill", now.fill);
  row.put_rate("fpr_now", now.fpr);
  row.put_rate("fpr_bound", numbers.exists ? numbers.fpr_bound : ops->fpr_bound(parameters));
  if (numbers.exists && !has_places_elsewhere(relation))
    row.put("overfull", BoolGetDatum(numbers.overfull));
  put_estimate(row, "distinct_estimate", now.distinct);
  put_estimate(row, "window_keys", window_keys(parameters, 0.01));
  row.put_time("created", numbers.created);
  row.put_time("last_reset", numbers.last_reset);
  row.put_time("last_saved", numbers.last_saved);
  row.put_time("restored", numbers.restored);
  row.put_time("stats_reset", numbers.stats_reset);
  row.put("state", describe_state(relation, numbers));
}

void put_slice(ReturnSetInfo* result, const FilterRelation* relation, uint32 slice) {
  const Oid server = relation->servers[slice % static_cast<uint32>(relation->server_count)];
  const TimestampTz since = unreachable_since(server);
  NamedRow row(result->setDesc);
  row.put("slice", Int32GetDatum(static_cast<int32>(slice)));
  // No lock keeps it from being dropped.
  const ForeignServer* found = GetForeignServerExtended(server, FSV_MISSING_OK);
  row.put("server", found == nullptr ? nullptr : found->servername);
  row.put("lost", BoolGetDatum(since != 0));
  row.put_time("lost_since", since);
  if (slice < kMaxCountedSlices) row.put_counts(read_slice_counts(relation->relid, slice));
  row.add_to(result);
}

FilterSlot* slot_to_show(const FilterRelation* relation) {
  FilterSlot* slot = usable_slot(relation);
  if (slot == nullptr) return nullptr;
  // Shows the parameters of the present state, even if another version has derived them.
  if (const Parameters& own = block_of(slot)->parameters;
      !has_same_geometry(own, relation->definition.parameters))
    adopt_geometry(const_cast<FilterRelation*>(relation), own);
  return slot;
}

}  // namespace

FilterSlot* slot_with_counts(const FilterRelation* relation) {
  FilterSlot* slot = slot_to_show(relation);
  if (slot != nullptr) return slot;
  slot = find_slot(MyDatabaseId, relation->relid, SlotState::counted);
  return slot != nullptr && slot->key_signature == key_signature(relation) ? slot : nullptr;
}

RowCounts counts_to_show(const FilterRelation* relation) {
  RowCounts counts;
  flush_counters();
  if (shared_state == nullptr) return counts;
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  if (const FilterSlot* slot = slot_with_counts(relation)) counts = slot->stats.counts.read();
  return counts;
}

void put_fault(ReturnSetInfo* set, const Fault& fault) {
  NamedRow row(set->setDesc);
  row.put("error", fault.text());
  row.add_to(set);
}

// ---- resetting ----------------------------------------------------------------------------------

// streamfilter_stats_reset: sets counters to zero, and leaves keys alone.

// For one filter, or, with InvalidOid, for all of this database.
static void reset(Oid relid) {
  flush_counters();
  if (shared_state == nullptr) return;
  const TimestampTz now = GetCurrentTimestamp();
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  for (int i = 0; i < shared_state->slot_count; ++i) {
    FilterSlot* slot = &shared_state->slots[i];
    if (slot->state != SlotState::free && slot->database == MyDatabaseId &&
        (!OidIsValid(relid) || slot->relation == relid)) {
      reset_statistics(&slot->stats, now);
      expect_other_rate(slot);
    }
  }
  LWLockRelease(shared_state->directory_lock);
  reset_counts(relid);
  reset_trigger_counts(relid);
}

// streamfilter_stat(filter oid): one row of streamfilter_stats; NULLs if it is no filter (any
// more).
SF_FUNCTION(streamfilter_stat) {
  say_shows_one_node(PG_GETARG_OID(0));
  NamedRow row(fcinfo);
  Fault fault;
  if (const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault))
    fill_row(row, relation);
  if (fault) row.put("error", fault.text());
  PG_RETURN_DATUM(row.datum());
}

// streamfilter_tree_node(filter oid): one row of streamfilter_tree; NULLs if it is no filter (any
// more), or in no tree.
SF_FUNCTION(streamfilter_tree_node) {
  say_shows_one_node(PG_GETARG_OID(0));
  NamedRow row(fcinfo);
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  if (fault) row.put("error", fault.text());
  if (relation != nullptr &&
      (relation->options.parent != nullptr || find_children(relation->relid) != NIL)) {
    if (OidIsValid(relation->parent)) row.put("parent", ObjectIdGetDatum(relation->parent));
    row.put("level", Int32GetDatum(relation->level));
    // Other servers count what reaches them.
    if (!is_remote(relation)) row.put_counts(counts_to_show(relation));
  }
  PG_RETURN_DATUM(row.datum());
}

// streamfilter_slice_stats(filter oid): rows of streamfilter_slices; none for a local filter.
SF_FUNCTION(streamfilter_slice_stats) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  if (fault) put_fault(set, fault);
  if (relation == nullptr || !is_remote(relation)) return static_cast<Datum>(0);
  flush_counters();
  for (uint32 i = 0; i < relation->definition.parameters.slices; ++i) put_slice(set, relation, i);
  return static_cast<Datum>(0);
}

// streamfilter_memory(): use of the filters' shared memory.
SF_FUNCTION(streamfilter_memory) {
  NamedRow row(fcinfo);
  if (shared_state != nullptr) {
    const MemoryUse use = memory_use();
    row.put_count("total", use.total);
    row.put_count("free", use.free);
    row.put_count("largest_free", use.largest_free);
    row.put_count("dynamic", use.dynamic);
    row.put("slots", Int32GetDatum(max_filters));
    row.put("slots_in_use", Int32GetDatum(use.slots_in_use));
  }
  PG_RETURN_DATUM(row.datum());
}

// streamfilter_stats_reset(filter regclass): for one filter, by its owner.
SF_FUNCTION(streamfilter_stats_reset) {
  const Oid relid = PG_GETARG_OID(0);
  require_own_filter(relid);
  Fault fault;
  if (const FilterRelation* relation = show_filter_relation(relid, fault);
      relation != nullptr && is_remote(relation))
    call_on_holders(relation, {"streamfilter_stats_reset", "reset the counters of"});
  reset(relid);
  call_on_other_nodes(relid, fcinfo->flinfo->fn_oid);
  PG_RETURN_VOID();
}

// streamfilter_stats_reset(): for all filters of the database, by superusers.
SF_FUNCTION(streamfilter_stats_reset_all) {
  reset(InvalidOid);
  call_on_other_nodes(InvalidOid, fcinfo->flinfo->fn_oid);
  PG_RETURN_VOID();
}

// ---- tuning -------------------------------------------------------------------------------------

// streamfilter_tuning: what a running filter would miss with less and more memory.

namespace {

constexpr double kFactors[] = {0.25, 0.5, 1, 2, 4};
// standard errors between an estimate and its limits: 95 of 100 are within
constexpr double kErrors = 2;

struct Counts {
  uint64 hits[kMaxRanks];
  uint64 misses[kFillSteps + 1];
  double false_hits[kMaxRanks];
  Answers answers;
};

// False: the filter has not been used yet.
bool read_counts(const FilterRelation* relation, Counts* counts) {
  if (shared_state == nullptr) return false;
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  FilterSlot* slot = slot_with_counts(relation);
  if (slot != nullptr) {
    for (unsigned i = 0; i < kMaxRanks; ++i)
      counts->hits[i] = pg_atomic_read_u64(&slot->stats.found_at[i]);
    for (unsigned i = 0; i <= kFillSteps; ++i)
      counts->misses[i] = pg_atomic_read_u64(&slot->stats.missed_at[i]);
  }
  return slot != nullptr;
}

void explain_counts(const Parameters& parameters, Counts* counts) {
  const double fpr = find_ops(parameters.kind)->fpr_bound(parameters);
  const unsigned ranks = ranks_of_bucket(parameters);
  expect_false_hits(counts->misses, ranks, fpr, counts->false_hits);
  counts->answers = {
      .hits = counts->hits,
      .ranks = ranks,
      .misses = std::accumulate(counts->misses, std::end(counts->misses), UINT64CONST(0)),
      .fpr = fpr,
      .false_hits = counts->false_hits,
      .buckets = buckets_of(parameters)};
}

void put_row(ReturnSetInfo* set, const Parameters& parameters, const Tuning& tuning,
             double factor) {
  const Tuned tuned = tuning.at(factor);
  NamedRow row(set->setDesc);
  row.put("factor", Float8GetDatum(factor));
  row.put_count("memory",
                saturate<int64>(std::round(factor * static_cast<double>(parameters.memory))));
  row.put_count("found", saturate<int64>(std::round(tuned.found)));
  row.put_rate("fnr", tuned.fnr);
  row.put_rate("fnr_low", std::clamp(tuned.fnr_low - kErrors * tuned.error, 0.0, 1.0));
  row.put_rate("fnr_high", std::clamp(tuned.fnr_high + kErrors * tuned.error, 0.0, 1.0));
  row.add_to(set);
}

void put_rows(ReturnSetInfo* set, const FilterRelation* relation) {
  const Parameters& parameters = relation->definition.parameters;
  if (ranks_of_bucket(parameters) == 0) return;
  flush_counters();
  resolve_prepared(relation->relid);
  Counts counts;
  if (!read_counts(relation, &counts)) return;
  explain_counts(parameters, &counts);
  const Tuning tuning(counts.answers);
  for (const double factor : kFactors) put_row(set, parameters, tuning, factor);
}

}  // namespace

// streamfilter_tune(filter oid): rows of streamfilter_tuning; none if it is no filter (any more),
// keeps no order of last sight, or has not been used yet.
SF_FUNCTION(streamfilter_tune) {
  say_shows_one_node(PG_GETARG_OID(0));
  ReturnSetInfo* set = begin_rows(fcinfo);
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  if (fault) put_fault(set, fault);
  if (relation != nullptr) put_rows(set, relation);
  return static_cast<Datum>(0);
}

}  // namespace streamfilter::pg
