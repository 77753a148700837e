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
// The operations on a bucket, and merging, are in cache_line_queue_ops.cpp (with two lines:
// cache_line_choice.hpp), copies that a resize leaves elsewhere in cache_line_copies.cpp. This file
// has options, and what concerns a filter as a whole.

#include "core/kind/cache_line_queue.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_tools.hpp"

namespace streamfilter {

using namespace clq;

namespace {

double buckets_of_slice(const Parameters& p) noexcept {
  return to_real(body_bytes(p) / kLineBytes) * shape_of(p).buckets();
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
         clock(*slice.state) <= (has_window(p) ? last_tick(p.integer(kTickLength)) : 0) &&
         has_valid_copies(p, *slice.state);
}

// The share of fields whose keys are in the window as of the latest element, from a sample of
// lines.
double live_share(const Parameters& p, ConstSlice slice) noexcept {
  const unsigned width = static_cast<unsigned>(p.integer(kBits)),
                 all = static_cast<unsigned>(p.integer(kBuckets) * p.integer(kBucket));
  const double live = sample_mean(p, slice.bytes / kLineBytes, 4096, [&](std::uint64_t i) {
    const unsigned char* line = slice.body() + i * kLineBytes;
    const auto ages = ages_of(p, line);
    const PackedFields fields(line, kLineBytes);
    const std::uint64_t later = ages.since_stamp(clock(*slice.state));
    unsigned count = 0;
    for (unsigned j = 0; j < all; ++j)
      count += fields.get(j * width, width) != 0 && is_live(p, ages.get(j), later);
    return count;
  });
  return live / all;
}

// A key is counted as distinct when it is reported as new; with a window, that can be many times.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  if (has_window(p)) {
    const double share = live_share(p, slice);
    return {share, share * shape_of(p).fpr(), std::numeric_limits<double>::quiet_NaN()};
  }
  const double fill =
      to_real(used(*slice.state)) / (buckets_of_slice(p) * to_real(p.integer(kBucket)));
  return {fill, fill * shape_of(p).fpr(), to_real(slice.state->inserted_new)};
}

double fpr_bound(const Parameters& p) noexcept { return shape_of(p).fpr(); }

// With an importance or policy second, an upper bound: for a key of the least importance among keys
// that all matter as much.
double fnr_at(const Parameters& p, double gap) noexcept {
  if (has_choice(p))
    return clq_model::fnr_of_two(gap, to_real(p.integer(kBucket)), buckets_of_slice(p), p.slices);
  const double length = to_real(p.integer(kBucket)), all = buckets_of_slice(p) * p.slices;
  const double lost = clq_model::fnr(gap, length - entrance(p, NAN), all);
  if (p.integer(kPolicy) != fifo) return lost;
  return std::lerp(lost, clq_model::moved(gap, length, all), shape_of(p).fpr());
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
    .learns_from_repeats = always,
    .derive = derive,
    .prefetch = prefetch,
    .in_one_line = in_one_line,
    .test = test,
    .insert = insert,
    .window = window,
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
    .resize = {.places = places,
               .spread = spread,
               .undivided = always,
               .may_join_places = may_join_places},
};

}  // namespace streamfilter

// ---- options ------------------------------------------------------------------------------------

// The options of kind clq, and the parameters that follow from them.

namespace streamfilter::clq {
namespace {

constexpr const char* kPolicies[] = {"lru", "fifo", "second", nullptr};

bool cannot_keep(const Definition& definition, Problem& problem) noexcept {
  problem.set(Error::conflict, "kind clq cannot keep fpr %g", definition.wanted_fpr());
  if (definition.given == 0)
    return problem.add_hint(
        "The least it can keep is %.3g.",
        clq_model::LineShape{kMaxFingerprintBits, 1, false, shape_of(definition.parameters).lines}
            .fpr());
  return problem.add_hint("Leave out bits and bucket, or use a larger fpr.");
}

// The FNR at which the promised window ends. If memory cannot hold all promised keys anyway, a
// looser limit will do.
bool find_shape(const Definition& definition, clq_model::LineShape& shape) noexcept {
  const Parameters& p = definition.parameters;
  const unsigned bits = definition.has(kBits) ? shape.bits : 0,
                 length = definition.has(kBucket) ? shape.length : 0;
  const double fpr = definition.wanted_fpr(),
               lines = to_real(body_bytes(p) / kLineBytes) * p.slices,
               keys = to_real(p.keys) / lines;
  if (!clq_model::best_shape(fpr, bits, length, shape, has_window(p), shape.lines)) return false;
  if (has_choice(p)) return true;
  if (clq_model::fnr(keys, shape.length, shape.buckets()) <= 0.01) return true;
  return clq_model::best_shape_for(keys, fpr, bits, length, shape, has_window(p));
}

// The shortest ticks with which ages fit into their bits. A key accepted at the end of a tick stays
// for exactly the window; one at its beginning, up to a tick longer.
bool derive_ticks(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (definition.has(kWindow) && p.integer(kWindow + 1) != 0) {
    problem.set(Error::unsupported, "kind clq has no windows of rows");
    problem.add_detail("Its fingerprints have ages in time; rows push the oldest out of a bucket.");
    return problem.add_hint("Use a time, for example window '10 minutes', or kind timer.");
  }
  if (!check_lateness(definition, kWindow, kLateness, problem)) return false;
  if (!definition.has(kWindow)) return true;
  const std::uint64_t rest = p.integer(kWindow) - 1, late = p.integer(kLateness);
  std::uint64_t ticks = kAges, tick;
  do tick = std::max<std::uint64_t>(1, ticks_of(rest, --ticks));
  while (ticks > 1 && ticks + ticks_of(late, tick) >= kAges);
  p.set_integer(kTickLength, tick);
  p.set_integer(kTicks, ticks_of(rest, tick) + 1 + ticks_of(late, tick));
  return true;
}

bool derive_importance(Definition& definition, Problem& problem) noexcept {
  if (!definition.has(kRange) && !definition.has(kLevels)) return true;
  if (!importance::check(definition, kImportanceWords, problem)) return false;
  Parameters& p = definition.parameters;
  if (definition.has(kPolicy) && p.integer(kPolicy) == second) {
    problem.set(Error::conflict, "policy second and an importance exclude each other");
    return problem.add_detail("Both say at which place a new key enters its bucket.");
  }
  p.set_integer(kParts, definition.has(kLevels) ? p.integer(kLevels) : kPartsOfRange);
  return true;
}

bool check_lines(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  if (!has_choice(p)) return true;
  const char* other = has_window(p)                ? "a window"
                      : has_importance(p)          ? "an importance"
                      : p.integer(kPolicy) == fifo ? "policy fifo"
                                                   : "policy second";
  if (!has_window(p) && !has_importance(p) && p.integer(kPolicy) == lru) return true;
  problem.set(Error::conflict, "lines 2 and %s exclude each other", other);
  problem.add_detail("Where a key has two lines, the order in them is that of last sight.");
  return problem.add_hint("Leave out one of them.");
}

}  // namespace

const OptionSpec kOptions[] = {
    integer_option(kBits, "bits", clq_model::kMinBits, kMaxFingerprintBits),
    integer_option(kBucket, "bucket", 1, clq_model::kMaxQueue),
    {.word = kPolicy, .name = "policy", .type = OptionType::choice, .choices = kPolicies},
    span_option(kWindow, "window"),
    importance::range_option(kRange),
    importance::levels_option(kLevels, 14),
    span_option(kLateness, "lateness"),
    integer_option(kLines, "lines", 1, 2),
};

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!derive_ticks(definition, problem) || !derive_importance(definition, problem)) return false;
  if (!definition.has(kPolicy)) p.set_integer(kPolicy, lru);
  if (!check_lines(definition, problem)) return false;
  clq_model::LineShape shape = shape_of(p);
  if (!definition.has(kBits) || !definition.has(kBucket)) {
    if (!find_shape(definition, shape)) return cannot_keep(definition, problem);
    p.set_integer(kBits, shape.bits);
    p.set_integer(kBucket, shape.length);
  }
  if (shape.is_possible()) {
    if (!has_choice(p)) p.set_integer(kBuckets, shape.buckets());
    return true;
  }
  problem.set(Error::conflict, "a line has no room for a bucket of %u fingerprints of %u bits",
              shape.length, shape.bits);
  problem.add_detail("A line has %u bits%s, and the fingerprints of a bucket are all different.",
                     kLineBits,
                     has_window(p)   ? ", of which a window takes 32 and 4 per fingerprint"
                     : has_choice(p) ? ", of which a choice of two takes 5"
                                     : "");
  return problem.add_hint("Leave out bucket, or set it to at most %u.",
                          clq_model::longest(shape.bits, has_window(p), shape.lines));
}

}  // namespace streamfilter::clq
