// The vector quotient filter (Pandey et al., SIGMOD 2021), with ages. A key has two 64-byte lines,
// and is an entry in one of them: a bucket of the line and a remainder of R bits
// (bits/quotient_line.hpp). It enters the emptier line, so all are filled evenly: 1 in 10,000 keys
// is lost for want of room once 93 to 98 % of the slots are taken.
//
// A new key meets one of the S entries of each full line with probability 2 S / (B 2^R) at most,
// for ever and on any stream. So fpr says what a line looks like; memory, how many keys are held.
// Where both lines are full, an entry goes for each that comes.
//
// Without a window, a key that is there changes nothing, and all keys can be deleted, merged, and
// brought into any other size, because an entry says all of a key: its line and its tag. Another
// size has the same rate for as many keys, and a higher one when it is full: option growth plans
// for it.
//
// With a window of time or rows every entry has an age code of 4 bits, or as many as `ages` says.
// vector_quotient.hpp has the rule. A repeat comes at most `window` after an accepted event, in
// ticks of about window/13: each within the window is found, none more than a tick after it is. An
// event that is later than `lateness` is never a repeat. With `extend`, repeats prolong the window
// of their key.

#include "core/kind/vector_quotient.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/kind_tools.hpp"

namespace streamfilter {

using namespace vqf;

namespace {

using ReadLine = QuotientLine<AnyShape, false, const unsigned char>;

double lines_of_slice(const Parameters& p) noexcept { return to_real(lines_of(p, body_bytes(p))); }

// Where lines have become more, entries are as hard to tell apart as they were in the fewest.
double growth_so_far(const Parameters& p) noexcept {
  return lines_of_slice(p) / to_real(least_lines(p));
}

// The rate if lines have so many entries in the mean.
double rate_of_entries(const Parameters& p, double entries) noexcept {
  return vector_quotient_model::fpr(shape_of(p), entries * growth_so_far(p),
                                    to_real(least_lines(p)));
}

bool has_valid_stamps(const Parameters& p, const SliceState& state,
                      const Lines<const SliceState, const unsigned char>& lines) noexcept {
  const std::uint64_t most = clock(state) - std::min(clock(state), kept_ticks(p) - 1);
  for (std::uint64_t i = 0; i < lines.count; i += kGroupLines)
    if (lines.stamp(i) > most) return false;
  return is_zero(lines.stamp_at(lines.count + kGroupLines - 1), lines.lines);
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  const SliceState& state = *slice.state;
  const Lines<const SliceState, const unsigned char> lines(p, slice);
  const AnyShape shape = shape_of(p);
  const std::uint64_t last = counts_rows(p)  ? rows(state) / p.integer(kTickLength)
                             : has_window(p) ? last_tick(p.integer(kTickLength))
                                             : 0;
  if (clock(state) > last || (counts_rows(p) ? clock(state) != last : rows(state) != 0) ||
      rows(state) > kMaxInsertions || evicted(state) > kMaxInsertions || state.own[4] != 0 ||
      (has_window(p) && !has_valid_stamps(p, state, lines)))
    return false;
  std::uint64_t entries = 0;
  for (std::uint64_t i = 0; i < lines.count; ++i) {
    const ReadLine line(shape, lines.at(i));
    if (!line.is_valid()) return false;
    entries += line.count();
    if (has_window(p) &&
        line.within(lines.stamp(i), clock(state) - lines.stamp(i) + 1) != line.in_use())
      return false;
  }
  return entries == used(state) && is_zero(lines.at(lines.count), slice.body() + slice.bytes);
}

// Entries that an event of the present would match, per slot, from a sample of lines.
double live_share(const Parameters& p, ConstSlice slice) noexcept {
  const Lines<const SliceState, const unsigned char> lines(p, slice);
  const AnyShape shape = shape_of(p);
  const std::uint64_t now = clock(*slice.state), first = now - std::min(now, window_ticks(p));
  const double live = sample_mean(p, lines.count, 4096, [&](std::uint64_t at) {
    const ReadLine line(shape, lines.at(at));
    const std::uint64_t base = lines.stamp(at),
                        old = first > base ? line.within(base, first - base) : 0;
    return count_ones<false>(line.in_use() & ~old);
  });
  return live / shape.slots;
}

// Distinct keys: a key whose tag was there has entered nothing. Once entries were lost, those that
// were reported as new.
double distinct(const Parameters& p, const SliceState& state) noexcept {
  const double tags = to_real(least_lines(p)) * vector_quotient_model::tags(shape_of(p)) / 2;
  if (evicted(state) > 0) return to_real(state.inserted_new);
  return -tags * std::log1p(-std::min(to_real(used(state)) / tags, 1 - 1 / tags));
}

Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const AnyShape shape = shape_of(p);
  const double lines = lines_of_slice(p),
               fill = has_window(p) ? live_share(p, slice)
                                    : to_real(used(*slice.state)) / (lines * shape.slots);
  return {fill, rate_of_entries(p, fill * shape.slots),
          has_window(p) ? std::numeric_limits<double>::quiet_NaN() : distinct(p, *slice.state)};
}

double fpr_bound(const Parameters& p) noexcept {
  return std::min(1.0, vector_quotient_model::fpr_bound(shape_of(p)) * growth_so_far(p));
}

std::uint64_t load(const Parameters&, ConstSlice slice) noexcept { return used(*slice.state); }

double rate_at(const Parameters& p, double load) noexcept {
  const double slots = lines_of_slice(p) * shape_of(p).slots;
  return fpr_bound(p) * std::min(load / slots, 1.0);
}

// A full slice, or one with its keys.
double fpr_to_come(const Parameters& p, ConstSlice) noexcept {
  if (p.keys == 0) return fpr_bound(p);
  const double lines = lines_of_slice(p), keys = to_real(p.keys) / p.slices;
  return std::min(fpr_bound(p), rate_of_entries(p, keys / lines));
}

double all_lines(const Parameters& p) noexcept { return lines_of_slice(p) * p.slices; }

// Until the fullest slice is full (keys_of_fullest). A window has its keys, and those that are kept
// for late events.
double held_keys(const Parameters& p) noexcept {
  double keys = vector_quotient_model::held(shape_of(p), lines_of_slice(p)) * lines_of_slice(p);
  if (p.slices > 1) keys = std::pow((std::sqrt(9 + 4 * keys) - 3) / 2, 2);
  if (has_window(p)) keys *= to_real(window_ticks(p)) / to_real(kept_ticks(p) - 1);
  return keys * p.slices;
}

// Without a window, keys that came before the last `gap` are gone: where there are more, those that
// were lost by chance are more.
double fnr_at(const Parameters& p, double gap) noexcept {
  const AnyShape shape = shape_of(p);
  if (has_window(p)) return vector_quotient_model::gone(shape, gap / all_lines(p));
  const double beyond = gap - held_keys(p);
  return beyond > 0 ? -std::expm1(-beyond / (all_lines(p) * shape.slots)) : 0;
}

Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  if (has_window(p)) return kNoPrediction;
  return vector_quotient_model::predict(shape_of(p), lines_of_slice(p), p.slices, stream);
}

bool tells_time(const Parameters& p) noexcept { return has_window(p) && !counts_rows(p); }

std::int64_t present(const Parameters& p, ConstSlice slice) noexcept {
  return tells_time(p) ? begin_of_tick(clock(*slice.state), p.integer(kTickLength))
                       : std::numeric_limits<std::int64_t>::min();
}

WindowTicks window(const Parameters& p) noexcept {
  if (counts_rows(p)) return {.rows = p.integer(kWindow)};
  if (!has_window(p)) return {};
  return {.length = p.integer(kTickLength),
          .near = window_ticks(p),
          .late = late_ticks(p),
          .extends = is_extended(p)};
}

}  // namespace

const FilterOps vqf_ops = {
    .kind = Kind::vqf,
    .name = "vqf",
    .summary =
        "vector quotient filter: keeps its false-positive rate for ever, takes another size, and "
        "has windows of time or rows",
    .options = kOptions,
    .chosen_by = words(kWindow, kLateness, kExtend),
    .keeps_fpr_forever = true,
    .remembers_keys = true,
    .forgets = Forgets::when_full,
    .uses_time = tells_time,
    .learns_from_repeats = is_extended,
    .derive = derive,
    .prefetch = prefetch,
    .test = test,
    .insert = insert,
    .renews = renews,
    .window = window,
    .clock = present,
    .erase = erase,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .load = load,
    .rate_at = rate_at,
    .fnr_at = fnr_at,
    .held_keys = held_keys,
    .predict = predict,
    .insert_unconditionally = insert_unconditionally,
    .resize = {.sized = words(kOrigin, kOrigin + 1, kOrigin + 2, kOrigin + 3, kOrigin + 4),
               .kept = words(kBits, kBuckets, kGrowth, kAges),
               .inherit = inherit,
               .places = [](const Parameters& p) noexcept { return lines_of(p, body_bytes(p)); },
               .undivided = always,
               .move = move,
               .fpr_to_come = fpr_to_come},
};

}  // namespace streamfilter

// ---- options ------------------------------------------------------------------------------------

// The options of kind vqf, and the parameters that follow from them.

namespace streamfilter::vqf {
namespace {

constexpr unsigned kUsualAges = 4;

constexpr const char* kExtends[] = {"no", "yes", nullptr};

// The shortest ticks whose codes suffice. The window is a whole number of them: otherwise repeats
// would be found up to two ticks after it.
bool derive_ticks(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!check_lateness(definition, kWindow, kLateness, problem)) return false;
  if (!definition.has(kWindow)) {
    if (definition.has(kAges)) return needs_window("option ages", problem);
    if (is_extended(p)) return needs_window("option extend", problem);
    return true;
  }
  if (!definition.has(kAges)) p.set_integer(kAges, kUsualAges);
  const std::uint64_t parts = counts_rows(p) ? p.slices : 1,
                      window = ticks_of(p.integer(kWindow), parts), late = p.integer(kLateness),
                      most = low_bits(static_cast<unsigned>(p.integer(kAges)));
  for (std::uint64_t ticks = 1; ticks < most; ++ticks) {
    const std::uint64_t length = ticks_of(window, ticks),
                        behind =
                            counts_rows(p) ? 0 : std::max<std::uint64_t>(1, ticks_of(late, length));
    if (ticks + behind + 1 > most) break;
    p.set_integer(kTicks, ticks | behind << 32);
    p.set_integer(kTickLength, length);
  }
  return true;
}

bool check_origin(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  const auto is_valid = [&] {
    for (unsigned i = 0; i < levels(p); ++i)
      if (p.real(kOrigin + 1 + i) != std::floor(p.real(kOrigin + 1 + i)) ||
          (i > 0 && level(p, i) >= level(p, i - 1)))
        return false;
    return least_lines(p) <= lines_of(p, body_bytes(p));
  };
  if (levels(p) == 0 || is_valid()) return true;
  problem.set(Error::conflict, "option origin does not fit the size");
  problem.add_detail("It has the numbers of lines that a slice has had in other sizes.");
  return problem.add_hint("Leave it out: ALTER sets it.");
}

bool cannot_keep(const Definition& definition, Problem& problem) noexcept {
  problem.set(Error::conflict, "kind vqf cannot keep fpr %g", definition.wanted_fpr());
  return problem.add_hint("Use a larger fpr%s.",
                          definition.has(kGrowth) ? ", or a smaller growth" : "");
}

}  // namespace

const OptionSpec kOptions[] = {
    integer_option(kBits, "bits", 1, kMaxRemainder),
    integer_option(kBuckets, "buckets", 1, kMaxBuckets),
    {.word = kGrowth, .name = "growth", .type = OptionType::real, .low = 1, .high = 1e6},
    span_option(kWindow, "window", Share::rounded_up),
    span_option(kLateness, "lateness"),
    integer_option(kAges, "ages", 3, kMaxAgeBits),
    {.word = kExtend, .name = "extend", .type = OptionType::choice, .choices = kExtends},
    {kOrigin, "origin", OptionType::reals, 1, 1e15, nullptr, kMaxLevels},
};

bool derive(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!derive_ticks(definition, problem)) return false;
  const auto given = [&](Word word) {
    return definition.has(word) ? static_cast<unsigned>(p.integer(word)) : 0;
  };
  if (!definition.has(kBits) || !definition.has(kBuckets)) {
    // Options that cannot keep a rate make the best of it; `check_request` says what fits.
    const double growth = definition.has(kGrowth) ? p.real(kGrowth) : 1;
    const bool is_given = definition.has(kBits) || definition.has(kBuckets);
    const unsigned ages = static_cast<unsigned>(p.integer(kAges));
    AnyShape shape;
    if (!vector_quotient_model::best_shape(definition.wanted_fpr(), growth, given(kBits),
                                           given(kBuckets), ages, shape)) {
      if (!is_given) return cannot_keep(definition, problem);
      shape = {0, definition.has(kBuckets) ? given(kBuckets) : kMaxBuckets,
               definition.has(kBits) ? given(kBits) : kMaxRemainder, ages};
    }
    p.set_integer(kBits, shape.bits);
    p.set_integer(kBuckets, shape.buckets);
  }
  if (lines_of(p, body_bytes(p)) > 0) return check_origin(definition, problem);
  problem.set(Error::too_small, "kind vqf needs more room for a window");
  return problem.add_hint("Use more memory, or fewer slices.");
}

}  // namespace streamfilter::vqf
