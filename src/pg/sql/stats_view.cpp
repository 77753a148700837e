// streamfilter_stats: what every filter of the database is, holds and has done.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
}

#include <cmath>

#include "core/base/saturate.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/shmem/in_flight_table.hpp"
#include "pg/shmem/loss_estimate.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/sql/stats_view.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/value/parameters_json.hpp"

namespace streamfilter::pg {
namespace {

struct Numbers {
  bool exists = false;  // there is state in shared memory
  uint64 dynamic = 0;   // bytes of it in dynamic memory
  Totals totals{};
  uint64 tested = 0, accepted = 0, discarded = 0;
  uint64 rolled_back = 0, in_flight = 0, waits = 0, overflowed = 0;
  uint64 unremembered = 0, would_discard = 0, diverted = 0, ahead = 0;
  double lost = 0;  // NaN: not known
  TimestampTz created = 0, last_reset = 0, last_saved = 0, restored = 0, stats_reset = 0;
  char set_aside[sizeof SavedState::set_aside] = "";
};

Numbers read_numbers(const FilterRelation* relation, const Parameters& parameters) {
  Numbers numbers;
  if (is_remote(relation)) {  // its state speaks for itself where it is
    const FilterCounts counts = read_filter_counts(relation->relid);
    numbers.tested = counts.tested;
    numbers.accepted = counts.accepted;
    numbers.discarded = counts.discarded;
    numbers.unremembered = counts.unremembered;
    numbers.would_discard = counts.would_discard;
    numbers.diverted = counts.diverted;
    numbers.ahead = counts.ahead;
    numbers.lost = NAN;
    numbers.totals.estimate = {NAN, NAN, NAN};
    return numbers;
  }
  if (shared_state == nullptr) return numbers;
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  if (FilterSlot* slot = slot_to_show(relation)) {
    numbers.exists = true;
    numbers.dynamic = is_dynamic(slot) ? slot->size : 0;
    numbers.tested = pg_atomic_read_u64(&slot->tested);
    numbers.accepted = pg_atomic_read_u64(&slot->accepted);
    numbers.discarded = pg_atomic_read_u64(&slot->discarded);
    numbers.would_discard = pg_atomic_read_u64(&slot->would_discard);
    numbers.diverted = pg_atomic_read_u64(&slot->diverted);
    numbers.ahead = pg_atomic_read_u64(&slot->ahead);
    numbers.lost = lost_rows(slot);
    numbers.stats_reset = static_cast<TimestampTz>(pg_atomic_read_u64(&slot->stats_reset));
    numbers.rolled_back = pg_atomic_read_u64(&slot->rolled_back);
    numbers.in_flight = count_in_flight(slot) + pg_atomic_read_u64(&slot->unregistered);
    numbers.waits = pg_atomic_read_u64(&slot->waits);
    numbers.overflowed = pg_atomic_read_u64(&slot->overflowed);
    numbers.created = slot->created;
    numbers.last_saved = slot->saved.last_saved;
    numbers.restored = slot->saved.restored;
    numbers.last_reset = slot->last_reset;
    strlcpy(numbers.set_aside, slot->saved.set_aside, sizeof numbers.set_aside);
    numbers.totals = read_totals(slot, parameters);
  }
  LWLockRelease(shared_state->directory_lock);
  return numbers;
}

// Fills the columns of one row in their order.
class Row {
 public:
  void datum(Datum value) { values_[count_++] = value; }
  void null() { isnull_[count_++] = true; }
  void count(uint64 value) { datum(Int64GetDatum(static_cast<int64>(value))); }
  void rate(double value) { std::isnan(value) ? null() : datum(Float8GetDatum(value)); }
  void time(bool known, TimestampTz value) { known ? datum(TimestampTzGetDatum(value)) : null(); }

  // A whole number that may be unknown or without limit: NULL then.
  void estimate(double value) {
    if (std::isfinite(value) && value < 9.2e18)
      count(saturate<uint64>(std::round(value)));
    else
      null();
  }

  void fill_up_to(int count) {
    while (count_ < count) null();
  }

  Datum tuple(TupleDesc descriptor) {
    Assert(count_ >= descriptor->natts);  // fewer before the extension is updated
    return HeapTupleGetDatum(heap_form_tuple(descriptor, values_, isnull_));
  }

 private:
  static constexpr int kMax = 64;
  int count_ = 0;
  Datum values_[kMax] = {};
  bool isnull_[kMax] = {};
};

// Where the state is; nullptr: nowhere, or on other servers.
const char* state_of(const FilterRelation* relation, const Numbers& numbers) {
  if (numbers.set_aside[0] != '\0') return psprintf("set aside: %s", numbers.set_aside);
  if (numbers.exists) return "loaded";
  return !is_remote(relation) && is_anything_saved(relation->relid) ? "saved" : nullptr;
}

void fill_row(Row& row, const FilterRelation* relation) {
  const Parameters& parameters = relation->definition.parameters;
  flush_counters();
  resolve_prepared();
  const Numbers numbers = read_numbers(relation, parameters);
  const FilterOps* ops = find_ops(parameters.kind);
  StringInfoData json;
  initStringInfo(&json);
  append_parameters_json(&json, parameters, relation->definition.reason,
                         relation->is_adopted ? &relation->derived_now : nullptr);
  row.datum(CStringGetTextDatum(ops->name));
  row.count(parameters.memory);
  row.datum(json_to_jsonb(json.data));
  row.count(numbers.tested);
  row.count(numbers.accepted);
  row.count(numbers.discarded);
  row.count(numbers.rolled_back);
  row.count(numbers.in_flight);
  row.count(numbers.waits);
  // Of state that nobody has read back yet nothing is known.
  const bool known = numbers.exists || is_remote(relation) || !is_anything_saved(relation->relid);
  const Estimate now = known ? numbers.totals.estimate : Estimate{NAN, NAN, NAN};
  row.rate(now.fill);
  row.rate(now.fpr);
  row.rate(ops->fpr_bound(parameters));
  row.estimate(now.distinct);
  row.estimate(window_keys(parameters, 0.01));
  row.time(numbers.exists, numbers.created);
  row.time(numbers.exists, numbers.last_reset);
  row.time(numbers.last_saved != 0, numbers.last_saved);
  row.time(numbers.restored != 0, numbers.restored);
  row.count(numbers.overflowed);
  row.count(numbers.unremembered);
  row.datum(CStringGetTextDatum(name_of(relation->options.mode)));
  row.count(numbers.would_discard);
  row.count(numbers.diverted);
  row.count(numbers.ahead);
  row.rate(numbers.lost);
  row.time(numbers.stats_reset != 0, numbers.stats_reset);
  row.count(numbers.dynamic);
  const char* state = state_of(relation, numbers);
  state != nullptr ? row.datum(CStringGetTextDatum(state)) : row.null();
}

}  // namespace

FilterSlot* slot_to_show(const FilterRelation* relation) {
  FilterSlot* slot = find_slot(MyDatabaseId, relation->relid, SlotState::pending);
  if (slot == nullptr || slot->owner != MyProcPid)
    slot = find_slot(MyDatabaseId, relation->relid, SlotState::live);
  if (slot == nullptr || slot->signature != relation->signature) return nullptr;
  // What is shown is what is there, also if another version has derived it.
  if (const Parameters& own = block_of(slot)->parameters;
      !has_same_geometry(own, relation->definition.parameters))
    adopt_geometry(const_cast<FilterRelation*>(relation), own);
  return slot;
}

bool has_error_column(TupleDesc descriptor) {
  return TupleDescAttr(descriptor, descriptor->natts - 1)->atttypid == TEXTOID;
}

void put_fault(ReturnSetInfo* set, const Fault& fault) {
  if (!has_error_column(set->setDesc)) return;
  const int last = set->setDesc->natts - 1;
  auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * (last + 1)));
  auto* isnull = static_cast<bool*>(palloc(sizeof(bool) * (last + 1)));
  memset(isnull, true, sizeof(bool) * last);
  values[last] = CStringGetTextDatum(fault.text());
  isnull[last] = false;
  tuplestore_putvalues(set->setResult, set->setDesc, values, isnull);
}

}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_stat(filter oid): one row of streamfilter_stats; NULLs if it is no filter (any
// more).
SF_FUNCTION(streamfilter_stat) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  Fault fault;
  Row row;
  if (const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault))
    fill_row(row, relation);
  if (has_error_column(descriptor)) {
    row.fill_up_to(descriptor->natts - 1);
    fault ? row.datum(CStringGetTextDatum(fault.text())) : row.null();
  }
  row.fill_up_to(descriptor->natts);
  PG_RETURN_DATUM(row.tuple(descriptor));
}
