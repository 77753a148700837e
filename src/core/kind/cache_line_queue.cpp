// The cache-line queue: a key's hash names one 64-byte line and a bucket in it, B fingerprints of f
// bits in the order of last sight. A key that is found moves to the front (LRU) or stays (FIFO);
// one that is not enters at the front, and the last falls out. The slot is the age: there is no
// other metadata, and an element touches one cache line.
//
// 0 stands for no fingerprint, so a new key meets one of the B others with probability B/(2^f - 1),
// for ever and on any stream. (Queues of fingerprints in buckets: Quotient Hash Tables,
// arXiv:1901.04358.)
//
// With a window, every fingerprint has an age in ticks (line_timestamps.hpp); a window
// takes at most 16 ticks. One that has left the window is absent: it is skipped by tests and
// removed by the next insertion into its line. As in kind timer, the window counts from the row
// that was accepted: a repeat moves to the front of its bucket with the age it has. Time is what
// elements say, a slice's clock the latest of it, infinite times mean the present, and an element
// that is late by d ticks enters with age d, or not at all.
//
// With an importance, a key enters the further back in its bucket, the less it matters: the most
// important ones at the front, the least important after three quarters of the slots. A key that
// is found moves up to that slot, or stays where it is if that is further in front.
//
// With policy second a new key enters behind the first slot. That one belongs to a key that has
// come again, and keeps it from being washed out by keys that never do.
//
// With two lines, a key may be in either of them, and a new one enters that which has taken fewer
// (line_entries.hpp). Lines are even then: at 1 % of false negatives a third more keys fit.
//
// A stamp says which tick it is modulo 2^32. A line that is left alone for so long could show what
// was in it once more; the false-positive rate holds whatever is in it.
//
// cache_line_queue_options.cpp has its options, cache_line_queue_ops.cpp what happens where a key
// lies (cache_line_choice.hpp: with two lines), cache_line_queue_merge.cpp two filters in one,
// cache_line_copies.cpp what another size leaves of a key elsewhere; this file what can be said of
// a filter as a whole.
#include <cmath>
#include <limits>

#include "core/kind/cache_line_queue.hpp"
#include "core/kind/kind_list.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {

using namespace clq;

namespace {

double buckets_of_slice(const Parameters& p) noexcept {
  return static_cast<double>((p.slice_bytes - sizeof(SliceState)) / kLineBytes) *
         shape_of(p).buckets();
}

// Are the fingerprints different, and in front of the slots that are free?
bool is_valid(const FingerprintQueue& queue) noexcept {
  const unsigned size = queue.size();
  for (unsigned i = 0; i < size; ++i)
    if (queue.get(i) == 0 || queue.slot(queue.get(i)) != i) return false;
  return true;
}

// Ages that can be, none where there is no fingerprint, and a stamp that is not in the future.
bool has_valid_ages(const Parameters& p, const SliceState& state,
                    const unsigned char* line) noexcept {
  const auto ages = ages_of(p, line);
  if (ages.since_stamp(clock(state)) > clock(state)) return false;
  const PackedFields fields(line, kLineBytes);
  const unsigned width = static_cast<unsigned>(p.integer(kBits));
  for (unsigned i = 0; i < p.integer(kBuckets) * p.integer(kBucket); ++i)
    if (ages.get(i) >= (fields.get(i * width, width) != 0 ? p.integer(kTicks) : 1)) return false;
  return true;
}

std::int64_t present(const Parameters& p, ConstSlice slice) noexcept {
  return has_window(p) ? begin_of_tick(clock(*slice.state), p.integer(kTickLength))
                       : std::numeric_limits<std::int64_t>::min();
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  const clq_model::Shape shape = shape_of(p);
  const PackedFields fields(slice.body(), slice.bytes);
  std::uint64_t taken = 0;
  bool valid = true;
  for_each_bucket(p, slice.bytes, [&](std::uint64_t line, unsigned start) {
    const FingerprintQueue queue(shape.bits, shape.length, slice.body() + line, start);
    taken += queue.size();
    valid = valid && is_valid(queue);
  });
  for (std::uint64_t line = 0; line < slice.bytes; line += kLineBytes) {
    const unsigned end = has_window(p)   ? ages_of(p, slice.body() + line).start()
                         : has_choice(p) ? kEntriesStart
                                         : kLineBits;
    for (unsigned bit = shape.bits * shape.length * shape.buckets(); bit < end; ++bit)
      valid = valid && fields.get(line * 8 + bit, 1) == 0;
    if (has_window(p)) valid = valid && has_valid_ages(p, *slice.state, slice.body() + line);
  }
  return valid && taken == used(*slice.state) &&
         clock(*slice.state) <= (has_window(p) ? kLastTick : 0) &&
         has_valid_copies(p, *slice.state);
}

// The share of slots that are taken by what is in the window as of the latest element, in up to
// 1024 lines that are looked at.
double live_share(const Parameters& p, ConstSlice slice) noexcept {
  constexpr std::uint64_t kMaxLooks = 1024;
  const std::uint64_t lines = slice.bytes / kLineBytes, looks = std::min(lines, kMaxLooks);
  const unsigned width = static_cast<unsigned>(p.integer(kBits)),
                 slots = static_cast<unsigned>(p.integer(kBuckets) * p.integer(kBucket));
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < looks; ++i) {
    const unsigned char* line =
        slice.body() +
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * lines / looks) * kLineBytes;
    const auto ages = ages_of(p, line);
    const PackedFields fields(line, kLineBytes);
    const std::uint64_t later = ages.since_stamp(clock(*slice.state));
    for (unsigned slot = 0; slot < slots; ++slot)
      count += fields.get(slot * width, width) != 0 && is_live(p, ages.get(slot), later);
  }
  return static_cast<double>(count) / static_cast<double>(looks * slots);
}

// A key is counted as distinct when it is reported as new; with a window, that can be many times.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  if (has_window(p)) {
    const double share = live_share(p, slice);
    return {share, share * shape_of(p).fpr(), std::numeric_limits<double>::quiet_NaN()};
  }
  const double fill = static_cast<double>(used(*slice.state)) /
                      (buckets_of_slice(p) * static_cast<double>(p.integer(kBucket)));
  return {fill, fill * shape_of(p).fpr(), static_cast<double>(slice.state->inserted_new)};
}

double fpr_bound(const Parameters& p) noexcept { return shape_of(p).fpr(); }

// With an importance or policy second, at most: of a key of the least importance if all others
// matter as much.
double fnr_at(const Parameters& p, double gap) noexcept {
  if (has_choice(p))
    return clq_model::fnr_of_two(gap, static_cast<double>(p.integer(kBucket)), buckets_of_slice(p),
                                 p.slices);
  return clq_model::fnr(gap, static_cast<double>(p.integer(kBucket) - entrance(p, NAN)),
                        buckets_of_slice(p) * p.slices);
}

// With other policies it matters how often keys came, which is not modelled.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (p.integer(kPolicy) != lru || has_window(p) || has_importance(p)) return {kUnknown, kUnknown};
  return clq_model::predict(shape_of(p), buckets_of_slice(p) * p.slices, stream);
}

}  // namespace

const FilterOps clq_ops = {
    .kind = Kind::clq,
    .name = "clq",
    .summary =
        "cache-line queue: keeps its false-positive rate for ever, remembers the keys seen last",
    .options = kOptions,
    .option_count = kOptionCount,
    .keeps_fpr_forever = true,
    .uses_importance = has_importance,
    .uses_time = has_window,
    .learns_from_repeats = true,
    .derive = derive,
    .prefetch = prefetch,
    .test = test,
    .insert = insert,
    .expired = expired,
    .expires = has_window,
    .clock = present,
    .erase = erase,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .fnr_at = fnr_at,
    .predict = predict,
    .ranks = ranks,
    .buckets = buckets_of_slice,
    .find_rank = find_rank,
    .promote = promote,
    .resize =
        {
            .places = places,
            .spread = spread,
            .undivided = always,
            .may_join_places = may_join_places,
        },
};

}  // namespace streamfilter
