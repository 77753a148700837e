
#include "core/kind/timing_options.hpp"
#include "core/base/math_policy.hpp"
#include "core/bits/packed_words.hpp"
#include "core/kind/kind_tools.hpp"

namespace streamfilter::timing {
namespace {

constexpr std::uint64_t kMaxFilters = 256;
constexpr std::uint64_t kDefaultTicks = 32;  // per window
constexpr std::uint64_t kDefaultFilters = 8;

bool derive_ticks(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kWindow)) return needs_window("kind timer", problem);
  if (!check_lateness(definition, kWindow, kLateness, problem)) return false;
  if (!definition.has(kTick)) {
    p.set_integer(kTick, std::max<std::uint64_t>(1, p.integer(kWindow) / kDefaultTicks));
    p.set_integer(kTick + 1, p.integer(kWindow + 1));
  }
  if (p.integer(kTick + 1) != p.integer(kWindow + 1) || p.integer(kTick) > p.integer(kWindow)) {
    problem.set(Error::conflict, "option tick must be a part of option window");
    return problem.add_detail("Both are times, or both are rows.");
  }
  const std::uint64_t parts = counts_rows(p) ? p.slices : 1;
  const std::uint64_t window = ticks_of(p.integer(kWindow), parts);
  const std::uint64_t tick = std::max<std::uint64_t>(1, p.integer(kTick) / parts);
  const std::uint64_t ticks = ticks_of(window - 1, tick) + 1 + ticks_of(p.integer(kLateness), tick);
  if (ticks > kMaxTicks) {
    problem.set(Error::out_of_range, "option tick is too short for this window");
    return problem.add_detail("A window can have up to %llu ticks.", llu(kMaxTicks));
  }
  p.set_integer(kTicks, ticks);
  p.set_integer(kTickLength, tick);
  p.set_integer(kTimerBits, bit_width(ticks + (ticks + 3) / 4));
  return true;
}

bool derive_filters(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  const std::uint64_t body = body_bytes(p);
  if (!definition.has(kGrow)) p.set_integer(kGrow, none);
  const bool grows = p.integer(kGrow) != none;
  if (!grows && definition.has(kSize))
    return needs_option("option size", "grow", "Without grow, a filter has the size of memory.",
                        problem);
  if (!grows && definition.has(kLimit)) return limit_needs_grow(problem);
  if (grows && !definition.has(kSize)) p.set_integer(kSize, body / kDefaultFilters * p.slices);
  const std::uint64_t bytes = filter_bytes(p),
                      overhead = sizeof(FilterState) + PackedWords<>::kSlack;
  const std::uint64_t cells = bytes > overhead ? (bytes - overhead) * 8 / p.integer(kTimerBits) : 0;
  if (cells < 8) {
    problem.set(Error::too_small, "kind timer needs more room for its timers");
    problem.add_detail("A filter of %llu bytes does not hold 8 timers of %u bits.", llu(bytes),
                       static_cast<unsigned>(p.integer(kTimerBits)));
    return problem.add_hint("Use more memory, a larger size, fewer slices or a longer tick.");
  }
  p.set_integer(kCells, cells);
  p.set_integer(kFilters, std::min(body / bytes, kMaxFilters));
  return true;
}

}  // namespace

slicing_model::SlicingShape shape_of(const Parameters& p) noexcept {
  return slicing_model::shape_of(p, to_real(p.integer(kK)), to_real(p.integer(kCells)));
}

// Keys stay for up to w ticks, and spread unevenly over slices (with three standard deviations to
// spare). A window of rows holds accepted rows, which stand for more keys once K is known.
double live_keys(const Parameters& p) noexcept {
  const double ticks = to_real(p.integer(kTicks)), tick = to_real(p.integer(kTickLength)),
               cells = to_real(p.integer(kCells));
  double live = std::numeric_limits<double>::infinity();
  if (counts_rows(p))
    live = p.integer(kK) == 0 ? ticks * tick
                              : timing_model::keys_for(to_real(p.integer(kK)), ticks * tick, cells);
  if (p.keys > 0) {
    const double stretched = counts_rows(p) ? 1 : ticks * tick / to_real(p.integer(kWindow));
    live = std::min(live, keys_of_fullest(to_real(p.keys) * stretched, groups_of(p)));
  }
  return live;
}

// Refuses options that keys with several probes cannot have: each slice counts only its own rows,
// and knows only its own timers.
static bool check_probes(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  if (p.slicing == Slicing::horizontal && p.k1 == 0) return true;
  if (counts_rows(p)) {
    problem.set(Error::conflict, "a window of rows goes with horizontal slices only");
    return problem.add_hint("Give a window of time: slices that share keys must forget together.");
  }
  if (!definition.has(kEqual)) return true;
  problem.set(Error::conflict, "option equal_timers goes with horizontal slices only");
  return problem.add_hint("The timers that it compares must lie in one slice.");
}

const OptionSpec kOptions[] = {
    span_option(kWindow, "window", Share::rounded_up),
    span_option(kTick, "tick", Share::rounded_down),
    integer_option(kK, "k", 1, kMaxHashes),
    integer_option(kEqual, "equal_timers", 2, kMaxHashes),
    grow_option(kGrow),
    integer_option(kSize, "size", 1, 0x1p46, Share::rounded_down),
    integer_option(kLimit, "limit", 1, 0x1p62),
    span_option(kLateness, "lateness"),
};

double keys_of_one(const Parameters& p) noexcept {
  const double limit = to_real(p.integer(kLimit)), k = real_k(p), m = real_m(p);
  if (p.integer(kGrow) == density) return counted_keys(limit, m, k);
  return shape_of(p).k1 > 1 ? limit : timing_model::keys_for(k, limit, m);
}

// Equal timers can only lower this bound.
double fpr_bound(const Parameters& p) noexcept {
  const double live = live_keys(p);
  if (!(live < 1e18)) return 1;
  const slicing_model::SlicingShape shape = shape_of(p);
  if (p.integer(kGrow) == none) return slicing_model::group_rate(shape, live);
  // Counts full filters, the newest, and the oldest, which some keys have left. The last key before
  // the limit can set K more timers.
  const double limit = to_real(p.integer(kLimit)), k = real_k(p), m = real_m(p),
               keys = keys_of_one(p);
  const double filled = std::ceil(keys_of_fullest(live * shape.k1, shape.slices) / keys) + 1;
  if (filled > filters(p)) return 1;
  const double one = p.integer(kGrow) == density ? std::pow(std::min(1.0, (limit + k) / m), k)
                                                 : timing_model::rate(k, keys, m);
  return std::pow(timing_model::rate_of_filters(one, filled), shape.k1);
}

bool derive(Definition& definition, Problem& problem) noexcept {
  if (!derive_ticks(definition, problem) || !check_probes(definition, problem) ||
      !derive_filters(definition, problem))
    return false;
  Parameters& p = definition.parameters;
  const bool derived = !definition.has(kK);
  if (derived) p.set_integer(kK, 0);
  const double live = derived ? live_keys(p) : 0, fpr = definition.wanted_fpr();
  if (derived && !(live < 1e18)) {
    problem.set(Error::conflict, "kind timer needs to know how many distinct keys to expect");
    problem.add_detail(
        "It remembers all keys of a window, so it keeps its false-positive rate only up to a "
        "number of keys.");
    return problem.add_hint("Give option keys (or k), or a window in rows.");
  }
  if (derived && p.integer(kGrow) == none)
    p.set_integer(kK, timing_model::best_k(live, to_real(p.integer(kCells)) * slices_of_group(p)));
  else if (derived)
    p.set_integer(kK, timing_model::growing_k(definition.wanted_fpr(), p.slicing, filters(p)));
  if (p.integer(kEqual) > p.integer(kK)) {
    problem.set(Error::conflict, "equal_timers %u exceeds k %u",
                static_cast<unsigned>(p.integer(kEqual)), static_cast<unsigned>(p.integer(kK)));
    return problem.add_hint("At most k timers can be equal; 2 or 3 lose few repeats.");
  }
  if (p.integer(kGrow) != none) {
    if (!definition.has(kLimit))
      p.set_integer(
          kLimit, timing_model::growing_limit(p.integer(kGrow) == density, definition.wanted_fpr(),
                                              filters(p), shape_of(p).k1, real_k(p), real_m(p)));
  }
  if (derived && fpr_bound(p) > fpr &&
      !definition.break_fpr(words(kWindow, kTick, kGrow, kLateness))) {
    const double all = live * groups_of(p);
    const double bytes = all * -std::log2(fpr) / std::log(2) / 8 * to_real(p.integer(kTimerBits));
    problem.set(Error::conflict, "kind timer cannot keep fpr %g in %llu bytes", fpr, llu(p.memory));
    problem.add_detail("Up to %.0f keys are live at a time; the rate would reach %.3g.", all,
                       fpr_bound(p));
    return problem.add_hint(
        "It needs about %.0f bytes%s; a longer tick, fewer keys or a larger "
        "fpr need less.",
        bytes, p.integer(kGrow) == none ? "" : ", and more to grow");
  }
  return true;
}

}  // namespace streamfilter::timing
