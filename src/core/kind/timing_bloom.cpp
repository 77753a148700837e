// Bloom filters over sliding windows (Koloniari et al. 2011 §4). Every cell is a timer: a new key
// sets it to w, and it counts down by one in each tick. A key is a repeat if all its K timers run,
// that is, if it was accepted within the last w ticks. Repeats set nothing.
//
// A window is a time, or a number of accepted rows. Each slice counts its own rows: with one slice
// a window of rows is exact, with several it is exact on average. After ALTER of memory, more
// timers may run than the window's rows can have set. Until then repeats count as rows, too: else a
// filter that takes nearly all keys for repeats would accept too few rows to recover. A timer takes
// w = ceil((window - 1) / tick) + 1 ticks: every repeat within the window is found, and none later
// than one tick after it.
//
// Elements tell the time; a slice's clock is the latest of them. An element that is d ticks late
// sets its timers to max(present value, w - d), or sets nothing if d >= w. Infinite times mean the
// present.
//
// Counting down. A running timer holds the tick at which it ends, modulo the number C of codes
// other than 0. With C = w, every tick would have to sweep all timers. Instead s = C - w codes are
// spare: an ended timer is known as such for s ticks, and each tick sweeps 1/s of the filter.
// ceil(log2(w + 1)) bits for a timer mostly leave s > 0; where s would be under w/4, a timer takes
// one more bit.
//
// Growth (§5). With `grow`, a slice is cut into filters of equal size. When the newest exceeds its
// limit of running timers (density) or accepted keys (cardinality), another one opens. Lookups
// search all filters, new keys go into the newest, and the oldest is discarded when all its timers
// have ended.
#include <boost/math/special_functions/beta.hpp>

#include "core/base/math_policy.hpp"
#include "core/format/spread.hpp"
#include "core/kind/kind_list.hpp"
#include "core/kind/timing_array.hpp"

namespace streamfilter {
namespace timing {
namespace {

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const auto all = filters(p, slice);
  return all.has(element.hash, all.tick_of(element));
}

void count_row(const Parameters& p, Slice slice) noexcept {
  const auto all = filters(p, slice);
  if (all.rows < kMaxRows) ++all.rows;
  all.advance(all.rows / p.integer(kTickLength));
}

// True if more timers run or wait to be swept than the rows of a window can have set.
template <typename Byte>
bool is_crowded(const Parameters& p, const Filters<SliceState, Byte>& all) noexcept {
  const double codes = std::ldexp(1, static_cast<int>(p.integer(kTimerBits))),
               rows = codes * to_real(p.integer(kTickLength)),
               m = real_m(p) * to_real(std::max<std::uint64_t>(all.open, 1));
  double load = 0;
  for (std::uint64_t i = 0; i < all.open; ++i) load += to_real(all.filter(i).state().non_zero);
  return load > 1.02 * -m * std::expm1(-real_k(p) * rows / m) + real_k(p);
}

// A new event may be late: its timers become max(present value, min(w, w - (t_i - t_u))).
void insert_unconditionally(const Parameters& p, Slice slice, const Element& element) noexcept {
  const auto all = filters(p, slice);
  std::uint64_t then = all.tick_of(element);
  all.advance(then);
  if (counts_rows(p)) {
    count_row(p, slice);
    then = all.clock;
  }
  const std::uint64_t late = all.clock - then;
  if (late < p.integer(kTicks)) all.add(element.hash, p.integer(kTicks) - late);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const auto all = filters(p, slice);
  const std::uint64_t then = all.tick_of(element);
  all.advance(then);
  if (!is_late(then, all.clock, std::max<std::uint64_t>(1, late_ticks(p))) &&
      all.has(element.hash, then)) {
    if (counts_rows(p) && is_crowded(p, all)) count_row(p, slice);
    return true;
  }
  insert_unconditionally(p, slice, element);
  return false;
}

WindowTicks window(const Parameters& p) noexcept {
  if (counts_rows(p)) return {.rows = p.integer(kWindow)};
  const std::uint64_t late = late_ticks(p);
  return {.length = p.integer(kTickLength),
          .near = p.integer(kTicks) - 1 - late,
          .late = std::max<std::uint64_t>(1, late)};
}

std::int64_t clock(const Parameters& p, ConstSlice slice) noexcept {
  return counts_rows(p) ? std::numeric_limits<std::int64_t>::min()
                        : begin_of_tick(filters(p, slice).clock, p.integer(kTickLength));
}

void share(const Parameters& p, Slice slice) noexcept { filters(p, slice).share(); }

// Filters that were filled in turn cannot be merged, unless one filter holds the keys of both.
bool fits(const Parameters& p, ConstSlice into, ConstSlice from) noexcept {
  if (p.integer(kGrow) == none) return true;
  const auto target = filters(p, into), source = filters(p, from);
  if (target.is_idle() || source.is_idle()) return true;
  if (target.sharing != source.sharing) return false;
  if (target.sharing != 0) return target.oldest == source.oldest;
  const FilterState &a = target.newest().state(), &b = source.newest().state();
  const std::uint64_t load =
      p.integer(kGrow) == density ? a.non_zero + b.non_zero : a.keys + b.keys;
  return target.open == 1 && source.open == 1 && load <= p.integer(kLimit);
}

// Merges two streams as if their rows had come by turns, each spread evenly over the whole: of
// either stream, its share of the window's last rows is kept.
struct Turns {
  std::uint64_t rows;   // of both
  std::uint64_t ticks;  // of a window

  // The ticks until a timer ends that had `left` among `own` rows; 0: it has ended.
  std::uint64_t left_of(std::uint64_t left, std::uint64_t own) const noexcept {
    const unsigned __int128 age = ticks - left + 1;
    const unsigned __int128 then = own > 0 ? (age * rows + own - 1) / own - 1 : ticks;
    return then < ticks ? ticks - static_cast<std::uint64_t>(then) : 0;
  }
};

template <typename Byte>
std::uint64_t running_ticks(const Timers<Byte>& timers, std::uint64_t i) noexcept {
  const std::uint64_t code = timers.code(i);
  return code != 0 ? static_cast<std::uint64_t>(std::max<std::int64_t>(timers.left(code), 0)) : 0;
}

// The merged filter has another present, so all timers are set anew.
void merge_rows(const Parameters& p, const Filters<SliceState, unsigned char>& target,
                const Filters<const SliceState, const unsigned char>& source) noexcept {
  const std::uint64_t rows = std::min(target.rows + source.rows, kMaxRows),
                      now = rows / p.integer(kTickLength);
  const Turns turns{rows, p.integer(kTicks)};
  for (std::uint64_t back = 1; back <= target.open; ++back) {
    const auto a = target.filter(target.open - back);
    const auto after = target.filter_at(target.open - back, now);
    FilterState sum = {a.state().keys, 0, 0, 0, 0};
    for (std::uint64_t i = 0; i < a.size(); ++i) {
      std::uint64_t left = running_ticks(a, i);
      if (left > 0) left = turns.left_of(left, target.rows);
      if (back <= source.open)
        if (const std::uint64_t other = running_ticks(source.filter(source.open - back), i))
          left = std::max(left, turns.left_of(other, source.rows));
      after.set(i, left);
      sum.non_zero += left > 0;
      if (left > 0) sum.last_end = std::max(sum.last_end, now + left);
    }
    if (back <= source.open)
      sum.keys = std::min(sum.keys + source.filter(source.open - back).state().keys, kMaxRows);
    after.state() = sum;
  }
  target.rows = rows;
  target.clock = now;
}

// Each timer takes the later end.
void merge_times(const Parameters& p, const Filters<SliceState, unsigned char>& target,
                 const Filters<const SliceState, const unsigned char>& source) noexcept {
  target.advance(source.clock);
  const std::uint64_t behind = target.clock - source.clock;
  if (behind >= p.integer(kTicks)) return;
  for (std::uint64_t back = 1; back <= source.open; ++back) {
    const auto a = target.filter(target.open - back);
    const auto b = source.filter(source.open - back);
    for (std::uint64_t i = 0; i < a.size(); ++i) {
      if (!b.runs(i, static_cast<std::int64_t>(behind))) continue;
      const std::uint64_t left = static_cast<std::uint64_t>(b.left(b.code(i))) - behind;
      a.prolong(i, left);
      a.state().last_end = std::max(a.state().last_end, target.clock + left);
    }
    a.state().keys = std::min(a.state().keys + b.state().keys, kMaxRows);
  }
}

void take_all(Slice into, ConstSlice from) noexcept {
  std::memcpy(into.body(), from.body(), into.bytes);
  std::memcpy(into.state->own, from.state->own, sizeof into.state->own);
}

bool is_same(ConstSlice a, ConstSlice b) noexcept {
  return std::memcmp(a.state->own, b.state->own, sizeof a.state->own) == 0 &&
         std::memcmp(a.body(), b.body(), a.bytes) == 0;
}

// Merges filters by age, the newest with the newest.
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept {
  const auto target = filters(p, into);
  const auto source = filters(p, from);
  into.state->inserted_new += from.state->inserted_new;
  if (is_same(as_const(into), from)) return;
  if (source.is_idle() && (!counts_rows(p) || source.rows == 0)) {
    if (!counts_rows(p)) target.advance(source.clock);
    return;
  }
  if (target.is_idle() && target.rows == 0) {
    const std::uint64_t now = target.clock;
    take_all(into, from);
    if (!counts_rows(p)) target.advance(now);
    return;
  }
  if (!counts_rows(p)) target.advance(source.clock);
  if (target.open == 0) target.open = 1;
  while (target.open < source.open) target.open_older();
  counts_rows(p) ? merge_rows(p, target, source) : merge_times(p, target, source);
}

bool check(const Parameters& p, ConstSlice slice) noexcept {
  return filters(p, slice).check(slice.bytes);
}

// The share of timers that run, from a sample.
template <typename Byte>
double running(const Parameters& p, const Timers<Byte>& timers) noexcept {
  return sample_mean(p, timers.size(), 65536, [&](std::uint64_t i) { return timers.runs(i, 0); });
}

// As of the latest element. There is no count of all distinct keys ever seen.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const auto all = filters(p, slice);
  double fill = 0, none_has = 1;
  for (std::uint64_t i = 0; i < all.open; ++i) {
    const double share = running(p, all.filter(i));
    fill += share / to_real(all.most());
    none_has *= 1 - std::pow(share, real_k(p));
  }
  return {fill, 1 - none_has, std::numeric_limits<double>::quiet_NaN()};
}

// Includes timers that have ended and are not swept yet.
std::uint64_t load(const Parameters& p, ConstSlice slice) noexcept {
  const auto all = filters(p, slice);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < all.open; ++i) sum += all.filter(i).state().non_zero;
  return sum;
}

// With `grow`, the rate is highest if all these timers are in one filter.
double rate_at(const Parameters& p, double load) noexcept {
  return std::pow(std::min(load / real_m(p), 1.0), real_k(p));
}

// ---- another size

std::uint64_t places(const Parameters& p) noexcept { return p.integer(kCells); }

// Converts the newest filters, as many as fit.
void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept {
  const auto target = filters(p, into);
  const auto source = filters(old, from);
  target.clock = source.clock;
  target.rows = source.rows;
  target.open = std::min(source.open, target.most());
  const std::uint64_t left_out = source.open - target.open;
  if (source.sharing > left_out && target.open == target.most())
    target.sharing = source.sharing - left_out;
  for (std::uint64_t i = 0; i < target.open; ++i) {
    const auto a = target.filter(i);
    const auto b = source.filter(left_out + i);
    for_each_place(b.size(), a.size(), layer, [&](std::uint64_t at, std::uint64_t old_at) {
      const std::uint64_t left = running_ticks(b, old_at);
      if (left == 0) return;
      a.set(at, left);
      ++a.state().non_zero;
      a.state().last_end = std::max(a.state().last_end, target.clock + left);
    });
  }
}

// Layers of one slice have one time, and add up; those of several slices merge like filters.
void merge_layer(const Parameters& p, Slice into, ConstSlice from) noexcept {
  if (!counts_rows(p)) return merge(p, into, from);
  const auto target = filters(p, into);
  const auto source = filters(p, from);
  if (target.open == 0 && target.rows == 0) return take_all(into, from);
  while (target.open < source.open) target.open_older();
  merge_times(p, target, source);
}

double keys_of_timers(const Parameters& p, std::uint64_t count) noexcept {
  return keys_of_share(to_real(count) / real_m(p), real_m(p), real_k(p));
}

// Estimates a filter's keys from its timers.
void note_keys(const Parameters& p, Slice slice, double) noexcept {
  const auto all = filters(p, slice);
  for (std::uint64_t i = 0; i < all.open; ++i) {
    FilterState& state = all.filter(i).state();
    state.keys =
        std::min(saturate<std::uint64_t>(std::ceil(keys_of_timers(p, state.non_zero))), kMaxRows);
  }
}

// The number of keys that a window can still bring into a slice. Where a resize has copied keys,
// timers count too many, hence the other limit.
double keys_to_come(const Parameters& p, ConstSlice slice) noexcept {
  const auto all = filters(p, slice);
  const slicing_model::SlicingShape shape = shape_of(p);
  double there = 0;
  for (std::uint64_t i = 0; i < all.open; ++i)
    there += keys_of_timers(p, all.filter(i).state().non_zero);
  if (shape.k1 == 1) there = std::min(there, to_real(slice.state->inserted_new));
  return std::max(0.0, live_keys(p) * shape.k1 / shape.slices - there);
}

// Holds until the window has passed; then the parameters' promise holds. With `grow`, keys still to
// come fill the newest filter up to its limit, then others.
double fpr_to_come(const Parameters& p, ConstSlice slice) noexcept {
  if (fpr_bound(p) >= 1) return 0;
  const auto all = filters(p, slice);
  const double most =
      p.integer(kGrow) == none ? std::numeric_limits<double>::infinity() : keys_of_one(p);
  double none_has = 1, more = keys_to_come(p, slice);
  for (std::uint64_t i = 0; i < all.most(); ++i) {
    if (i >= all.open && !(more > 0)) break;
    const double has = i < all.open ? keys_of_timers(p, all.filter(i).state().non_zero) : 0;
    double taken = 0;
    if (i + 1 >= all.open) {
      taken = i + 1 < all.most() ? std::clamp(most - has, 0.0, more) : more;
      more -= taken;
    }
    none_has *= 1 - timing_model::rate(real_k(p), has + taken, real_m(p));
  }
  return std::pow(1 - none_has, probes(p));
}

// For a stream of distinct keys. A window of time misses no key before its end; a window of rows
// misses keys that have left the window of their slice. Equal timers miss some others.
double fnr_at(const Parameters& p, double gap) noexcept {
  const double since = std::max(0.0, gap - 1);
  const double window = to_real((p.integer(kWindow) + p.slices - 1) / p.slices);
  double left = 0;
  if (counts_rows(p) && since >= window)
    left = p.slices == 1
               ? 1
               : boost::math::ibeta(window, since - window + 1, 1.0 / p.slices, MathPolicy());
  if (p.integer(kEqual) == 0) return left;
  const double overwritten = -std::expm1(-real_k(p) * since / p.slices / real_m(p));
  return left + (1 - left) * timing_model::equal_timers_fnr(
                                 static_cast<unsigned>(p.integer(kK)),
                                 static_cast<unsigned>(p.integer(kEqual)), overwritten);
}

// For repeats that all come after one gap. A repeat does not prolong its key's window, so after an
// accepted row the J-th repeat is accepted next, if J gaps exceed the window. The more rows are
// accepted, the fewer rows of the stream make a window. At the beginning all rows are new and
// accepted; the model neglects that, because a stream is long beside the window.
struct AtGap {
  double missed;  // share of the repeats
  double window;  // in rows of the stream
};

AtGap at_gap(const Stream& stream, double window) noexcept {
  const double gap = stream.gap(), again = stream.again(), all = stream.rows();
  double missed = 1, rows = window;
  for (int round = 0; round < 200; ++round) {
    rows = window / (1 - again + again * missed);
    const double j = std::floor(rows / gap) + 1;
    if (j * gap >= all) return {0, rows};
    const double share =
        again < 1 ? std::pow(again, j - 1) * (1 - again) / (1 - std::pow(again, j)) : 1 / j;
    const double now = share * (all - j * gap) / (all - gap);
    if (now >= missed) break;
    missed = now;
  }
  return {missed, rows};
}

// A new key mistaken for a repeat sets no timers. If it comes again after the first of its K
// timers, which run for others, has ended, it is found to be new: the probability of that.
double found_out(const Stream& stream, double window, double k) noexcept {
  if (window >= stream.rows()) return 0;
  const double gaps = window / stream.gap(), stride = std::max(1.0, gaps / 256);
  double sum = 0, before = 1;
  for (double j = stride; before > 0; j += stride) {
    const double running = std::pow(std::max(0.0, 1 - j / gaps), k);
    sum += (before - running) * std::pow(stream.again(), j);
    before = running;
  }
  return sum;
}

// For plain windows of rows. The number of keys in a slice depends on the phase of the tick; it
// includes keys that are mistaken for accepted ones.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  constexpr int kPhases = 16;
  if (!counts_rows(p) || p.integer(kGrow) != none || p.integer(kEqual) != 0) return kNoPrediction;
  const double tick = to_real(p.integer(kTickLength)), longest = to_real(p.integer(kTicks)) * tick,
               slices = p.slices;
  const auto keys_in = [&](double window) {
    return timing_model::keys_for(real_k(p), window, real_m(p));
  };
  const double capacity = keys_in(longest - (tick - 1) / 2);
  const auto held = [&](double n) { return exact_store_model::held(n, capacity, slices); };
  const auto rate = [&](double n) {
    return timing_model::rate(real_k(p), held(n) / slices, real_m(p));
  };
  const double fpr = exact_store_model::mean_fpr(stream.distinct(), rate);
  if (stream.gap() == 0) return {fpr, exact_store_model::mean_fnr(stream, held, rate)};
  if (!(stream.repeats() > 0)) return {fpr, kNoPrediction.fnr};
  double fnr = 0;
  for (int i = 0; i < kPhases; ++i) {
    const double window = longest - (tick - 1) * (i + 0.5) / kPhases;
    const AtGap result = at_gap(stream, slices * keys_in(window));
    fnr += result.missed * (1 - fpr) +
           fpr * stream.distinct() / stream.repeats() * found_out(stream, result.window, real_k(p));
  }
  return {fpr, std::min(fnr / kPhases, 1.0)};
}

constexpr FilterOps row() noexcept {
  return {
      .kind = Kind::timer,
      .name = "timer",
      .summary =
          "Bloom filter over a sliding window of time or rows: forgets exactly what has left it",
      .options = kOptions,
      .has_probes = true,
      .forgets = Forgets::after_window,
      .uses_time = always,
      .derive = derive,
      .needs_keys =
          [](const Definition& definition) noexcept {
            return !definition.has(kK) && definition.has(kWindow) &&
                   !counts_rows(definition.parameters);
          },
      .test = test,
      .insert = insert,
      .window = window,
      .clock = clock,
      .merge = merge,
      .check = check,
      .estimate = estimate,
      .fpr_bound = fpr_bound,
      .load = load,
      .rate_at = rate_at,
      .fnr_at = fnr_at,
      .predict = predict,
      .insert_unconditionally = insert_unconditionally,
      .share = share,
      .fits = fits,
      .resize = {.sized = words(kSize, kFilters, kCells, kLimit),
                 .hashes = words(kK),
                 .places = places,
                 .spread = spread,
                 .merge = merge_layer,
                 .note_keys = note_keys,
                 .fpr_to_come = fpr_to_come},
  };
}

}  // namespace
}  // namespace timing

const FilterOps timer_ops = timing::row();

}  // namespace streamfilter
