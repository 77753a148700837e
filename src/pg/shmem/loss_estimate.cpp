#include "pg/server/postgres.hpp"

#include "pg/shmem/loss_estimate.hpp"

namespace streamfilter::pg {
namespace {

constexpr double kUnit = 4294967296;    // of RowCount::lost
constexpr double kMost = 1e6;           // odds of a filter that calls everything a repeat
constexpr double kToldByAccepted = .5;  // up to this rate
constexpr double kShareUnit = 65536;    // of LossEstimate::weight and fresh
constexpr double kLatest = 4096;        // rows that tell the share of new ones
constexpr uint64 kGrowth = 64;
constexpr uint64 kFew = 16;
constexpr int64 kInterval = USECS_PER_SEC;

// Leaves out slices that let repeats pass.
double discarding_rate(const FilterSlot* slot, const Parameters& parameters, double passing) {
  const FilterOps* ops = find_ops(parameters.kind);
  double sum = 0;
  for (uint32 i = 0; i < parameters.slices; ++i) {
    const LockHeld held(slice_lock(slot, i), LW_SHARED);
    const double rate =
        ops->estimate(parameters, slice_at(static_cast<const Header*>(block_of(slot)), i)).fpr;
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
  pg_atomic_write_u64(&slot->loss.odds,
                      std::bit_cast<uint64>(std::fmin(estimate.fpr / (1 - estimate.fpr), kMost)));
  pg_atomic_write_u64(&slot->loss.fill, std::bit_cast<uint64>(estimate.fill));
}

bool is_due(FilterSlot* slot, TimestampTz now) {
  const uint64 before = pg_atomic_read_u64(&slot->loss.accepted);
  const auto looked_at = static_cast<TimestampTz>(pg_atomic_read_u64(&slot->loss.looked_at));
  return slot->stats.counts.read(RowCount::accepted) - before > before / kGrowth + kFew ||
         now - looked_at >= kInterval || time_in(slot->stats.last_reset) >= looked_at;
}

void add_misses(FilterSlot* slot, const RowsToAdd& rows) {
  const double fill =
      rows.met_empty ? 0 : std::bit_cast<double>(pg_atomic_read_u64(&slot->loss.fill));
  pg_atomic_fetch_add_u64(&slot->stats.missed_at[fill_step(fill)], rows.accepted);
}

// From counts before this use of the slot, of rows in all modes.
double share_counted(const FilterSlot* slot) {
  const RowCounts counts = slot->stats.counts.read();
  const auto lost = static_cast<double>(counts[RowCount::lost]) / kUnit;
  const auto accepted = static_cast<double>(counts[RowCount::accepted]);
  const auto repeats = static_cast<double>(
      counts[RowCount::discarded] + counts[RowCount::diverted] + counts[RowCount::would_discard]);
  return accepted + repeats > 0 ? std::fmin((accepted + lost) / (accepted + repeats), 1) : .5;
}

void add_to(pg_atomic_uint64* sum, double rows) {
  pg_atomic_fetch_add_u64(sum, std::llround(rows * kShareUnit));
}

// Notes rows, weighted by the odds that a new one was accepted, and how many were.
void note_share(LossEstimate* loss, double weight, double fresh) {
  add_to(&loss->weight, weight);
  add_to(&loss->fresh, fresh);
  uint64 sum = pg_atomic_read_u64(&loss->weight);
  while (static_cast<double>(sum) > 2 * kLatest * kShareUnit) {
    const uint64 half = pg_atomic_read_u64(&loss->fresh) / 2;
    if (!pg_atomic_compare_exchange_u64(&loss->weight, &sum, sum / 2)) return;
    pg_atomic_fetch_sub_u64(&loss->fresh, static_cast<int64>(half));
    sum /= 2;
  }
}

double share_of_new(const LossEstimate* loss) {
  auto* read = const_cast<LossEstimate*>(loss);
  const double weight = static_cast<double>(pg_atomic_read_u64(&read->weight)),
               fresh = static_cast<double>(pg_atomic_read_u64(&read->fresh));
  return std::fmin(fresh / weight, 1);
}

double losses_of(FilterSlot* slot, const RowsToAdd& rows) {
  const double odds = std::bit_cast<double>(pg_atomic_read_u64(&slot->loss.odds));
  if (!(odds >= 0)) return 0;
  const double fpr = rows.met_empty ? 0 : odds / (1 + odds);
  const auto accepted = static_cast<double>(rows.accepted - rows.spared);
  const double all = accepted + static_cast<double>(rows.discarded);
  if (pg_atomic_read_u64(&slot->loss.weight) == 0) note_share(&slot->loss, 1, share_counted(slot));
  note_share(&slot->loss, all * (1 - fpr), accepted);
  return fpr <= kToldByAccepted ? accepted * fpr / (1 - fpr)
                                : all * fpr * share_of_new(&slot->loss);
}

}  // namespace

Totals read_totals(const FilterSlot* slot, const Parameters& parameters) {
  Totals totals{};
  for (uint32 i = 0; i < parameters.slices; ++i) {
    const LockHeld held(slice_lock(slot, i), LW_SHARED);
    add_slice(totals, parameters, slice_at(static_cast<const Header*>(block_of(slot)), i));
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

void add_losses(FilterSlot* slot, const RowsToAdd& rows) {
  if (rows.accepted == 0 && rows.discarded == 0) return;
  add_misses(slot, rows);
  if (const double lost = losses_of(slot, rows); lost > 0)
    pg_atomic_fetch_add_u64(slot->stats.counts[RowCount::lost], std::llround(lost * kUnit));
  note_false_rate(slot);
}

void expect_other_rate(FilterSlot* slot) { pg_atomic_write_u64(&slot->loss.looked_at, 0); }

double lost_rows(const FilterSlot* slot) {
  auto* loss = const_cast<LossEstimate*>(&slot->loss);
  if (std::isnan(std::bit_cast<double>(pg_atomic_read_u64(&loss->odds)))) return NAN;
  return static_cast<double>(slot->stats.counts.read(RowCount::lost)) / kUnit;
}

}  // namespace streamfilter::pg
