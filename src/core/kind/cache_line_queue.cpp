// The cache-line queue: a key's hash names one 64-byte line and a bucket in it. A bucket holds B
// fingerprints of f bits in the order of last sight. A key that is found moves to the front (LRU)
// or stays (FIFO). A new key enters at the front, and the last one falls out. The field tells the
// age: no other metadata is needed, and an element touches one cache line.
//
// Fingerprint 0 marks a free field, so a new key meets one of the B others with probability B/(2^f
// - 1), for ever and on any stream. (Queues of fingerprints in buckets: Quotient Hash Tables,
// arXiv:1901.04358.)
//
// With a window, every fingerprint has an age in ticks (line_tail.hpp); a window has at most
// 16 ticks. A key that has left the window counts as absent: tests skip it, and the next insertion
// into its line removes it. As in kind timer, the window starts at the row that was accepted: a
// repeat moves to the front of its bucket but keeps its age. Elements tell the time; a slice's
// clock is the latest of them, infinite times mean the present. An element that is d ticks late
// enters with age d, or not at all.
//
// With an importance, less important keys enter further back in their bucket: the most important
// ones at the front, the least important after three quarters of the fields. A key that is found
// moves up to that field, or stays where it is if that is further in front.
//
// With policy second, a new key enters behind the first field. The first field is for a key that
// has come again: keys that never do cannot wash it out.
//
// With two lines, a key may be in either, and a new key enters the line that has had fewer entries
// (line_tail.hpp). That keeps lines even: at 1 % of false negatives a third more keys fit.
//
// A stamp is a tick modulo 2^32. If a line is left alone for longer, expired keys in it can seem
// live again; the false-positive rate holds whatever is in a line.
//
// Options are in cache_line_queue_options.cpp, the operations on a bucket in
// cache_line_queue_ops.cpp (with two lines: cache_line_choice.hpp), merging in
// cache_line_queue_merge.cpp, copies that a resize leaves elsewhere in cache_line_copies.cpp. This
// file has what concerns a filter as a whole.
#include <cmath>
#include <limits>

#include "core/kind/cache_line_queue.hpp"
#include "core/kind/kind_list.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {

using namespace clq;

namespace {

double buckets_of_slice(const Parameters& p) noexcept {
  return static_cast<double>(body_bytes(p) / kLineBytes) * shape_of(p).buckets();
}

// True if the fingerprints are different, and all free fields are behind them.
bool is_valid(const FingerprintQueue& queue) noexcept {
  const unsigned size = queue.size();
  for (unsigned i = 0; i < size; ++i)
    if (queue.get(i) == 0 || queue.rank(queue.get(i)) != i) return false;
  return true;
}

// True if ages are in range, free fields have none, and the stamp is not in the future.
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
  const clq_model::LineShape shape = shape_of(p);
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

// The share of fields whose keys are in the window as of the latest element, from a sample of up to
// 1024 lines.
double live_share(const Parameters& p, ConstSlice slice) noexcept {
  constexpr std::uint64_t kMaxLooks = 1024;
  const std::uint64_t lines = slice.bytes / kLineBytes, looks = std::min(lines, kMaxLooks);
  const unsigned width = static_cast<unsigned>(p.integer(kBits)),
                 all = static_cast<unsigned>(p.integer(kBuckets) * p.integer(kBucket));
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < looks; ++i) {
    const unsigned char* line =
        slice.body() +
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * lines / looks) * kLineBytes;
    const auto ages = ages_of(p, line);
    const PackedFields fields(line, kLineBytes);
    const std::uint64_t later = ages.since_stamp(clock(*slice.state));
    for (unsigned j = 0; j < all; ++j)
      count += fields.get(j * width, width) != 0 && is_live(p, ages.get(j), later);
  }
  return static_cast<double>(count) / static_cast<double>(looks * all);
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

// With an importance or policy second, an upper bound: for a key of the least importance among keys
// that all matter as much.
double fnr_at(const Parameters& p, double gap) noexcept {
  if (has_choice(p))
    return clq_model::fnr_of_two(gap, static_cast<double>(p.integer(kBucket)), buckets_of_slice(p),
                                 p.slices);
  return clq_model::fnr(gap, static_cast<double>(p.integer(kBucket) - entrance(p, NAN)),
                        buckets_of_slice(p) * p.slices);
}

// Other policies depend on how often keys came, which has no model.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  if (p.integer(kPolicy) != lru || has_window(p) || has_importance(p)) return kNoPrediction;
  return clq_model::predict(shape_of(p), buckets_of_slice(p) * p.slices, stream);
}

// A change of size may have left copies of a key in other lines.
bool in_one_line(const Parameters& p, const SliceState& state) noexcept {
  return !has_choice(p) && !has_window(p) && (state.own[2] | state.own[3] | state.own[4]) == 0;
}

constexpr OptionToTry kToTry[] = {{"policy", "second", /*has_model=*/false}, {"lines", "2"}};

}  // namespace

const FilterOps clq_ops = {
    .kind = Kind::clq,
    .name = "clq",
    .summary =
        "cache-line queue: keeps its false-positive rate for ever, remembers the keys seen last",
    .options = kOptions,
    .keeps_fpr_forever = true,
    .remembers_keys = true,
    .uses_importance = has_importance,
    .uses_time = has_window,
    .learns_from_repeats = true,
    .derive = derive,
    .prefetch = prefetch,
    .in_one_line = in_one_line,
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
    .to_try = kToTry,
    .resize =
        {
            .places = places,
            .spread = spread,
            .undivided = always,
            .may_join_places = may_join_places,
        },
};

}  // namespace streamfilter
