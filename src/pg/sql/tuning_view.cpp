// streamfilter_tuning: what a running filter would miss with less and more memory.
#include "pg/server/postgres.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/advise/tuning.hpp"
#include "core/base/saturate.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/named_row.hpp"
#include "pg/sql/stats_view.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
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
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  FilterSlot* slot = slot_with_counts(relation);
  if (slot != nullptr) {
    for (unsigned i = 0; i < kMaxRanks; ++i)
      counts->hits[i] = pg_atomic_read_u64(&slot->stats.found_at[i]);
    for (unsigned i = 0; i <= kFillSteps; ++i)
      counts->misses[i] = pg_atomic_read_u64(&slot->stats.missed_at[i]);
  }
  LWLockRelease(shared_state->directory_lock);
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
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_tune(filter oid): rows of streamfilter_tuning; none if it is no filter (any more),
// keeps no order of last sight, or has not been used yet.
SF_FUNCTION(streamfilter_tune) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  if (fault) put_fault(set, fault);
  if (relation != nullptr) put_rows(set, relation);
  return static_cast<Datum>(0);
}
