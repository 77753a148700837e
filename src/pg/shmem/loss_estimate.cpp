#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/timestamp.h"
}

#include <bit>
#include <cmath>

#include "pg/shmem/loss_estimate.hpp"

namespace streamfilter::pg {
namespace {

constexpr double kUnit = 4294967296;  // of RowCount::lost
constexpr double kMost = 1e6;         // odds of a filter that takes everything for a repeat
constexpr uint64 kGrowth = 64;
constexpr int64 kInterval = USECS_PER_SEC;

double odds_of(double fpr) { return std::fmin(fpr / (1 - fpr), kMost); }

// Without the slices that let what they take for repeats pass.
double discarding_rate(const FilterSlot* slot, const Parameters& parameters, double passing) {
  const FilterOps* ops = find_ops(parameters.kind);
  double sum = 0;
  for (uint32 i = 0; i < parameters.slices; ++i) {
    LWLock* lock = slice_lock(slot, i);
    LWLockAcquire(lock, LW_SHARED);
    const double rate =
        ops->estimate(parameters, slice_at(static_cast<const Header*>(block_of(slot)), i)).fpr;
    LWLockRelease(lock);
    if (rate <= passing) sum += rate / parameters.slices;
  }
  return sum;
}

double rate_of_losses(FilterSlot* slot, const Parameters& parameters, double all) {
  const double passing = std::bit_cast<double>(pg_atomic_read_u64(&slot->loss.passing));
  if (!(passing > 0)) return all;
  if (parameters.k1 > 0) return all > passing ? 0 : all;
  return discarding_rate(slot, parameters, passing);
}

void look_up(FilterSlot* slot, uint64 applied, TimestampTz now) {
  const Parameters& parameters = block_of(slot)->parameters;
  Estimate estimate = read_totals(slot, parameters).estimate;
  estimate.fpr = rate_of_losses(slot, parameters, estimate.fpr);
  pg_atomic_write_u64(&slot->loss.applied, applied);
  pg_atomic_write_u64(&slot->loss.accepted, slot->stats.counts.read(RowCount::accepted));
  pg_atomic_write_u64(&slot->loss.looked_at, static_cast<uint64>(now));
  pg_atomic_write_u64(&slot->loss.odds, std::bit_cast<uint64>(odds_of(estimate.fpr)));
  pg_atomic_write_u64(&slot->loss.fill, std::bit_cast<uint64>(estimate.fill));
}

bool is_due(FilterSlot* slot, TimestampTz now) {
  const uint64 before = pg_atomic_read_u64(&slot->loss.accepted);
  const auto looked_at = static_cast<TimestampTz>(pg_atomic_read_u64(&slot->loss.looked_at));
  return slot->stats.counts.read(RowCount::accepted) - before > before / kGrowth ||
         now - looked_at >= kInterval || time_in(slot->stats.last_reset) >= looked_at;
}

void add_misses(FilterSlot* slot, const AcceptedRows& accepted) {
  const double fill =
      accepted.met_empty ? 0 : std::bit_cast<double>(pg_atomic_read_u64(&slot->loss.fill));
  pg_atomic_fetch_add_u64(&slot->stats.missed_at[fill_step(fill)], accepted.count);
}

}  // namespace

Totals read_totals(const FilterSlot* slot, const Parameters& parameters) {
  Totals totals{};
  for (uint32 i = 0; i < parameters.slices; ++i) {
    LWLock* lock = slice_lock(slot, i);
    LWLockAcquire(lock, LW_SHARED);
    add_slice(totals, parameters, slice_at(static_cast<const Header*>(block_of(slot)), i));
    LWLockRelease(lock);
  }
  return totals;
}

void note_passing_rate(FilterSlot* slot, double rate) {
  if (std::bit_cast<uint64>(rate) == pg_atomic_read_u64(&slot->loss.passing)) return;
  pg_atomic_write_u64(&slot->loss.passing, std::bit_cast<uint64>(rate));
  expect_other_rate(slot);
}

void note_false_rate(FilterSlot* slot) {
  const uint64 applied = pg_atomic_read_u64(&slot->applied);
  const TimestampTz now = GetCurrentStatementStartTimestamp();
  if (pg_atomic_read_u64(&slot->loss.odds) == LossEstimate::kUnknownOdds ||
      (applied != pg_atomic_read_u64(&slot->loss.applied) && is_due(slot, now)))
    look_up(slot, applied, now);
}

void add_losses(FilterSlot* slot, const AcceptedRows& accepted) {
  if (accepted.count == 0) return;
  add_misses(slot, accepted);
  const double odds = std::bit_cast<double>(pg_atomic_read_u64(&slot->loss.odds));
  const double lost = odds * static_cast<double>(accepted.count - accepted.spared) * kUnit;
  if (lost > 0) pg_atomic_fetch_add_u64(slot->stats.counts[RowCount::lost], std::llround(lost));
  note_false_rate(slot);
}

void expect_other_rate(FilterSlot* slot) { pg_atomic_write_u64(&slot->loss.looked_at, 0); }

double lost_rows(const FilterSlot* slot) {
  auto* loss = const_cast<LossEstimate*>(&slot->loss);
  if (std::isnan(std::bit_cast<double>(pg_atomic_read_u64(&loss->odds)))) return NAN;
  return static_cast<double>(slot->stats.counts.read(RowCount::lost)) / kUnit;
}

}  // namespace streamfilter::pg
