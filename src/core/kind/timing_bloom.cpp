// Bloom filters over sliding windows (Koloniari et al. 2011 §4): every cell is a timer, set to
// w by a key that is new and counting down to 0 once per tick. A key is a repeat if all K timers
// run: if it was accepted within the last w ticks. Repeats set nothing (first-test-then-set).
//
// A window is a time, or a number of accepted rows, of which each slice counts its own share: with
// one slice, a window of rows is exact, with several, it is so on average. A timer takes
// w = ceil((window - 1) / tick) + 1 ticks: no repeat within the window is missed, and none later
// than one tick after it is found.
//
// Time is what elements say; a slice's clock is the latest of it. An element that is late by d
// ticks sets its timers to max(what they are, w - d), nothing if d >= w. Infinite times mean the
// present.
//
// Counting down. A running timer holds the tick at which it ends, modulo the number C of codes that
// are not 0. With C = w, all timers would have to be swept at each tick for those that end. There
// are s = C - w codes to spare, so that a timer that has ended is known as such for s ticks: each
// tick sweeps 1/s of the filter. ceil(log2(w + 1)) bits a timer are enough for s > 0 mostly; one
// bit more is taken where s would be under w/4.
//
// Growth (§5). With `grow`, a slice is cut into filters of equal size. When the newest exceeds its
// limit of running timers (density) or accepted keys (cardinality), another one is opened: keys are
// looked for in all and remembered in the newest. The oldest is discarded when all its timers have
// ended. Where copies of such a filter are filled with parts of one stream, to be merged, a key goes
// by its hash into any of the filters that were not in use when that began, and none is discarded.
#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>

#include "core/base/math_policy.hpp"
#include "core/base/saturate.hpp"
#include "core/base/ticks.hpp"
#include "core/bits/packed_words.hpp"
#include "core/format/sharding.hpp"
#include "core/format/slice_counters.hpp"
#include "core/kind/kind_list.hpp"
#include "core/model/exact_store_model.hpp"
#include "core/model/sharding_model.hpp"
#include "core/model/timing_model.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

enum Word : unsigned {
  kWindow,    // and its unit
  kTick = 2,  // and its unit
  kK = 4,
  kEqual,
  kGrow,
  kSize,
  kTicks,  // derived: w
  kTimerBits,
  kFilters,     // how many of them a slice can have
  kCells,       // m of one of them
  kLimit,       // its running timers or its keys
  kTickLength,  // in microseconds, or accepted rows of one slice
};

enum Grow : std::uint64_t { none, density, cardinality };

constexpr unsigned kMaxHashes = 32;
constexpr double kMaxSpan = 1e18;
constexpr std::uint64_t kMaxFilters = 256;
constexpr std::uint64_t kDefaultTicks = 32;  // per window
constexpr std::uint64_t kDefaultFilters = 8;

constexpr const char* kGrows[] = {"none", "density", "cardinality", nullptr};

constexpr OptionSpec kOptions[] = {
    {.word = kWindow, .name = "window", .type = OptionType::span, .low = 1, .high = kMaxSpan},
    {.word = kTick, .name = "tick", .type = OptionType::span, .low = 1, .high = kMaxSpan},
    {.word = kK, .name = "k", .type = OptionType::integer, .low = 1, .high = kMaxHashes},
    {.word = kEqual,
     .name = "equal_timers",
     .type = OptionType::integer,
     .low = 2,
     .high = kMaxHashes},
    {.word = kGrow,
     .name = "grow",
     .type = OptionType::choice,
     .low = 1,
     .high = 2,
     .choices = kGrows},  // none: not in use
    {.word = kSize, .name = "size", .type = OptionType::integer, .low = 1, .high = 0x1p46},
    {.word = kLimit, .name = "limit", .type = OptionType::integer, .low = 1, .high = 0x1p62},
};

bool counts_rows(const Parameters& p) noexcept { return p.integer(kWindow + 1) != 0; }

// The timers of a key in a slice: all k of them, or fewer if it lies in several probes.
unsigned own_k(const Parameters& p) noexcept {
  return static_cast<unsigned>(bits_per_probe(p, p.integer(kK)));
}

// What a filter in a slice keeps before its timers.
struct FilterState {
  std::uint64_t keys;       // that were added
  std::uint64_t non_zero;   // timers that run or have not been swept yet
  std::uint64_t last_end;   // the tick at which the last timer ends
  std::uint64_t swept;      // the next timer to sweep
  std::uint64_t all_swept;  // the tick at which all were swept at once
};
static_assert(sizeof(FilterState) == 40);

std::uint64_t filter_bytes(const Parameters& p) noexcept {
  const std::uint64_t body = p.slice_bytes - sizeof(SliceState);
  return p.integer(kGrow) == none ? body
                                  : std::min(body, p.integer(kSize) / p.slices & ~std::uint64_t{7});
}

// ---- parameters

bool derive_ticks(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.has(kWindow)) {
    problem.set(Error::conflict, "kind timer needs option window");
    return problem.add_hint("For example: window '10 minutes', or window '1000000 rows'.");
  }
  if (!definition.has(kTick)) {
    p.set_integer(kTick, std::max<std::uint64_t>(1, p.integer(kWindow) / kDefaultTicks));
    p.set_integer(kTick + 1, p.integer(kWindow + 1));
  }
  if (p.integer(kTick + 1) != p.integer(kWindow + 1) || p.integer(kTick) > p.integer(kWindow)) {
    problem.set(Error::conflict, "option tick must be a part of option window");
    return problem.add_detail("Both are times, or both are rows.");
  }
  const std::uint64_t parts = counts_rows(p) ? p.slices : 1;
  const std::uint64_t window = (p.integer(kWindow) + parts - 1) / parts;
  const std::uint64_t tick = std::max<std::uint64_t>(1, p.integer(kTick) / parts);
  const std::uint64_t ticks = (window - 1 + tick - 1) / tick + 1;
  if (ticks > kMaxTicks) {
    problem.set(Error::out_of_range, "option tick is too short for this window");
    return problem.add_detail("A window can have up to %llu ticks.",
                              static_cast<unsigned long long>(kMaxTicks));
  }
  p.set_integer(kTicks, ticks);
  p.set_integer(kTickLength, tick);
  p.set_integer(kTimerBits, bit_width(ticks + (ticks + 3) / 4));
  return true;
}

bool derive_filters(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  const std::uint64_t body = p.slice_bytes - sizeof(SliceState);
  if (!definition.has(kGrow)) p.set_integer(kGrow, none);
  if (p.integer(kGrow) == none && definition.has(kSize)) {
    problem.set(Error::conflict, "option size needs option grow");
    return problem.add_hint("Without grow, a filter has the size of memory.");
  }
  if (p.integer(kGrow) == none && definition.has(kLimit)) {
    problem.set(Error::conflict, "option limit needs option grow");
    return problem.add_hint("It is the load at which the next filter is opened.");
  }
  if (p.integer(kGrow) != none && !definition.has(kSize))
    p.set_integer(kSize, body / kDefaultFilters * p.slices);
  const std::uint64_t bytes = filter_bytes(p),
                      overhead = sizeof(FilterState) + PackedWords<>::kSlack;
  const std::uint64_t cells = bytes > overhead ? (bytes - overhead) * 8 / p.integer(kTimerBits) : 0;
  if (cells < 8) {
    problem.set(Error::too_small, "kind timer needs more room for its timers");
    problem.add_detail("A filter of %llu bytes does not hold 8 timers of %u bits.",
                       static_cast<unsigned long long>(bytes),
                       static_cast<unsigned>(p.integer(kTimerBits)));
    return problem.add_hint("Use more memory, a larger size, fewer slices or a longer tick.");
  }
  p.set_integer(kCells, cells);
  p.set_integer(kFilters, std::min(body / bytes, kMaxFilters));
  return true;
}

sharding_model::Shape shape_of(const Parameters& p) noexcept {
  return sharding_model::shape_of(p, static_cast<double>(p.integer(kK)),
                                  static_cast<double>(p.integer(kCells)));
}

// How many keys are live at most in the slices that a key can be in; infinity: unknown. They stay
// for up to w ticks, and spread over slices unevenly (three standard deviations are allowed for).
// A window of rows holds accepted ones, which stand for more keys once K is known.
double live_keys(const Parameters& p) noexcept {
  const double ticks = static_cast<double>(p.integer(kTicks)),
               tick = static_cast<double>(p.integer(kTickLength)),
               cells = static_cast<double>(p.integer(kCells));
  double live = std::numeric_limits<double>::infinity();
  if (counts_rows(p))
    live = p.integer(kK) == 0
               ? ticks * tick
               : timing_model::keys_for(static_cast<double>(p.integer(kK)), ticks * tick, cells);
  if (p.keys > 0) {
    const double stretched =
        counts_rows(p) ? 1 : ticks * tick / static_cast<double>(p.integer(kWindow));
    live = std::min(live, keys_of_fullest(static_cast<double>(p.keys) * stretched, groups_of(p)));
  }
  return live;
}

double real_k(const Parameters& p) noexcept { return own_k(p); }
double real_m(const Parameters& p) noexcept { return static_cast<double>(p.integer(kCells)); }

double filters(const Parameters& p) noexcept { return static_cast<double>(p.integer(kFilters)); }

// A slice of keys with several probes does not know which of them are new: it counts all.
double cardinality_limit(const Parameters& p, double one) noexcept {
  if (shape_of(p).k1 <= 1) return timing_model::cardinality_limit(one, real_k(p), real_m(p));
  return -real_m(p) / real_k(p) * std::log1p(-std::pow(one, 1 / real_k(p)));
}

// Equal timers only lower it.
double fpr_bound(const Parameters& p) noexcept {
  const double live = live_keys(p);
  if (!(live < 1e18)) return 1;
  const sharding_model::Shape shape = shape_of(p);
  if (p.integer(kGrow) == none) return sharding_model::group_rate(shape, live);
  // Full filters, the newest, and the oldest, of which some keys have gone. The last key before the
  // limit can set K timers more.
  const double limit = static_cast<double>(p.integer(kLimit)), k = real_k(p), m = real_m(p);
  const double keys = p.integer(kGrow) == density
                          ? -m / k * std::log1p(-std::min(limit / m, 1 - 1 / m))
                      : shape.k1 > 1 ? limit
                                     : timing_model::keys_for(k, limit, m);
  const double filled = std::ceil(keys_of_fullest(live * shape.k1, shape.slices) / keys) + 1;
  if (filled > filters(p)) return 1;
  const double one = p.integer(kGrow) == density ? std::pow(std::min(1.0, (limit + k) / m), k)
                                                 : timing_model::rate(k, keys, m);
  return std::pow(timing_model::rate_of_filters(one, filled), shape.k1);
}

// What keys of several probes can do: a slice counts its own rows, and knows its own timers.
bool check_probes(const Definition& definition, Problem& problem) noexcept {
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
    p.set_integer(kK, timing_model::best_k(
                          live, static_cast<double>(p.integer(kCells)) * slices_of_group(p)));
  else if (derived)
    p.set_integer(kK, timing_model::growing_k(definition.wanted_fpr(), p.slicing, filters(p)));
  if (p.integer(kEqual) > p.integer(kK)) {
    problem.set(Error::conflict, "equal_timers %u exceeds k %u",
                static_cast<unsigned>(p.integer(kEqual)), static_cast<unsigned>(p.integer(kK)));
    return problem.add_hint("At most k timers can be equal; 2 or 3 lose few repeats.");
  }
  if (p.integer(kGrow) != none) {
    const double one =
        timing_model::rate_of_one(definition.wanted_fpr(), shape_of(p).k1, filters(p));
    const double limit = p.integer(kGrow) == density
                             ? timing_model::density_limit(one, real_k(p), real_m(p)) - real_k(p)
                             : cardinality_limit(p, one);
    if (!definition.has(kLimit))
      p.set_integer(kLimit, std::max(saturate<std::uint64_t>(limit), std::uint64_t{1}));
  }
  if (derived && fpr_bound(p) > fpr) {
    const double all = live * groups_of(p);
    const double bytes =
        all * -std::log2(fpr) / std::log(2) / 8 * static_cast<double>(p.integer(kTimerBits));
    problem.set(Error::conflict, "kind timer cannot keep fpr %g in %llu bytes", fpr,
                static_cast<unsigned long long>(p.memory));
    problem.add_detail("Up to %.0f keys are live at a time; the rate would reach %.3g.", all,
                       fpr_bound(p));
    return problem.add_hint(
        "It needs about %.0f bytes%s; a longer tick, fewer keys or a larger "
        "fpr need less.",
        bytes, p.integer(kGrow) == none ? "" : ", and more to grow");
  }
  return true;
}

// ---- the state of a slice

constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 62;

template <typename State>
struct Counters {
  using Word = std::conditional_t<std::is_const_v<State>, const std::uint64_t, std::uint64_t>;
  explicit Counters(State& state) noexcept
      : clock(state.own[0]),
        oldest(state.own[1]),
        open(state.own[2]),
        rows(state.own[3]),
        sharing(state.own[4]) {}

  Word& clock;   // the present tick
  Word& oldest;  // index of the oldest filter
  Word& open;    // how many there are, from the oldest on
  Word& rows;    // accepted, if the window counts rows
  Word& sharing; // 0, or of a stream that is shared: 1 + the first filter that it fills
};

// Reads and writes the timers of one filter. A code c > 0 stands for an end at a tick that is
// congruent to c - 1 modulo C.
template <typename Byte>
class Timers {
 public:
  using State = std::conditional_t<std::is_const_v<Byte>, const FilterState, FilterState>;

  Timers(const Parameters& p, Byte* bytes, std::uint64_t clock) noexcept
      : state_(reinterpret_cast<State*>(bytes)),
        words_(bytes + sizeof(FilterState), 0, static_cast<unsigned>(p.integer(kTimerBits))),
        m_(p.integer(kCells)),
        ticks_(p.integer(kTicks)),
        codes_((std::uint64_t{1} << p.integer(kTimerBits)) - 1),
        present_(clock % codes_) {}

  State& state() const noexcept { return *state_; }
  std::uint64_t size() const noexcept { return m_; }
  std::uint64_t code(std::uint64_t i) const noexcept { return words_.get(i); }

  // The ticks until a timer ends, 1 to w; of one that has ended and was not swept, 0 or less.
  std::int64_t left(std::uint64_t code) const noexcept {
    std::uint64_t ahead = code - 1 + codes_ - present_;
    if (ahead >= codes_) ahead -= codes_;
    return static_cast<std::int64_t>(ahead) -
           static_cast<std::int64_t>(ahead > ticks_ ? codes_ : 0);
  }

  bool runs(std::uint64_t i, std::int64_t after) const noexcept {
    const std::uint64_t it = code(i);
    return it != 0 && left(it) > after;
  }

  // Timer i ends in `ticks` ticks, or later if it does so now.
  void prolong(std::uint64_t i, std::uint64_t ticks) const noexcept {
    const std::uint64_t it = code(i);
    if (it != 0 && left(it) >= static_cast<std::int64_t>(ticks)) return;
    state_->non_zero += it == 0;
    words_.set(i, 1 + (present_ + ticks) % codes_);
  }

  // Timer i ends in `ticks` ticks; 0: it does not run.
  void set(std::uint64_t i, std::uint64_t ticks) const noexcept {
    words_.set(i, ticks > 0 ? 1 + (present_ + ticks) % codes_ : 0);
  }

  // Clears the next `count` timers where they end within `ticks` from now.
  void sweep(std::uint64_t count, std::int64_t ticks) const noexcept {
    std::uint64_t at = state_->swept;
    for (; count > 0; --count) {
      if (const std::uint64_t it = code(at); it != 0 && left(it) <= ticks) {
        words_.set(at, 0);
        --state_->non_zero;
      }
      if (++at == m_) at = 0;
    }
    state_->swept = at;
  }

  // What must be swept while `ticks` pass: 1/s of all per tick.
  std::uint64_t due(std::uint64_t ticks) const noexcept {
    return ticks >= spare() ? m_ : std::min(m_, ticks * per_tick());
  }

  // Will timer i, which has ended, be swept before it seems to run again?
  bool is_swept_in_time(std::uint64_t i) const noexcept {
    const std::uint64_t since = static_cast<std::uint64_t>(-left(code(i)));
    const std::uint64_t ahead = i >= state_->swept ? i - state_->swept : i + m_ - state_->swept;
    return ahead / per_tick() + since < spare();
  }

 private:
  std::uint64_t spare() const noexcept { return codes_ - ticks_; }
  std::uint64_t per_tick() const noexcept { return (m_ + spare() - 1) / spare(); }

  State* state_;
  PackedWords<Byte> words_;
  std::uint64_t m_, ticks_, codes_, present_;
};

std::uint64_t tick(const Parameters& p, std::int64_t time) noexcept {
  return tick_at(time, p.integer(kTickLength));
}

template <typename State, typename Byte>
class Filters : public Counters<State> {
 public:
  using Counters<State>::clock;
  using Counters<State>::oldest;
  using Counters<State>::open;
  using Counters<State>::rows;
  using Counters<State>::sharing;

  Filters(const Parameters& p, BasicSlice<State, Byte> slice) noexcept
      : Counters<State>(*slice.state), p_(p), body_(slice.body()), bytes_(filter_bytes(p)) {}

  // Filter i in order of age, the oldest first.
  Timers<Byte> filter(std::uint64_t i) const noexcept { return filter_at(i, clock); }
  Timers<Byte> filter_at(std::uint64_t i, std::uint64_t now) const noexcept {
    return {p_, at((oldest + i) % most()), now};
  }
  Timers<Byte> newest() const noexcept { return filter(open - 1); }

  // The tick of an element; the present for one without.
  std::uint64_t tick_of(const Element& element) const noexcept {
    return counts_rows(p_) || !is_finite(element.time) ? clock : tick(p_, element.time);
  }

  // Definition 4, in `after` ticks from now.
  bool has(std::uint64_t hash, std::uint64_t after) const noexcept {
    if (after >= p_.integer(kTicks)) return false;
    for (std::uint64_t i = open; i > 0; --i)
      if (has(filter(i - 1), hash, static_cast<std::int64_t>(after))) return true;
    return false;
  }

  void advance(std::uint64_t now) const noexcept {
    if (now <= clock) return;
    for (std::uint64_t i = 0; i < open; ++i) {
      const Timers<Byte> timers = filter(i);
      if (timers.state().last_end <= now)
        clear(timers);
      else
        timers.sweep(timers.due(now - clock), static_cast<std::int64_t>(now - clock));
    }
    clock = now;
    while (open > 1 && sharing == 0 && filter(0).state().non_zero == 0) {
      clear(filter(0));
      oldest = (oldest + 1) % most();
      --open;
    }
  }

  // Remembers a key for `ticks` ticks.
  void add(std::uint64_t hash, std::uint64_t ticks) const noexcept {
    if (sharing == 0) make_room();
    const Timers<Byte> timers = sharing == 0 ? newest() : filter(shared_filter(hash));
    for (unsigned i = 0; i < own_k(p_); ++i)
      timers.prolong(position(hash, i, timers.size()), ticks);
    if (timers.state().keys < kMaxRows) ++timers.state().keys;
    timers.state().last_end = std::max(timers.state().last_end, clock + ticks);
  }

  // Has copies of this filter fill all filters that are free, and the newest if there is none.
  void share() const noexcept {
    if (p_.integer(kGrow) == none || sharing != 0) return;
    sharing = 1 + std::min(open, most() - 1);
    open = most();
  }

  // Does no timer run?
  bool is_idle() const noexcept {
    for (std::uint64_t i = 0; i < open; ++i)
      if (filter(i).state().non_zero != 0) return false;
    return true;
  }

  // Opens an older filter that is still empty.
  void open_older() const noexcept {
    oldest = (oldest + most() - 1) % most();
    ++open;
  }

  std::uint64_t most() const noexcept { return p_.integer(kFilters); }

  // Could these bytes be the state of a slice?
  bool check(std::uint64_t body_bytes) const noexcept {
    if (open > most() || oldest >= most() || clock > kLastTick || rows > kMaxRows) return false;
    if (counts_rows(p_) ? clock != rows / p_.integer(kTickLength) : rows != 0) return false;
    if (sharing != 0 && (p_.integer(kGrow) == none || sharing > most() || open != most()))
      return false;
    for (std::uint64_t i = 0; i < open; ++i)
      if (!check(filter(i))) return false;
    for (std::uint64_t i = open; i < most(); ++i)
      if (!is_zero(at((oldest + i) % most()), bytes_)) return false;
    return is_zero(at(most()), body_bytes - most() * bytes_);
  }

 private:
  Byte* at(std::uint64_t index) const noexcept { return body_ + index * bytes_; }

  std::uint64_t shared_filter(std::uint64_t hash) const noexcept {
    const std::uint64_t first = sharing - 1;
    return first + scale(mix64(hash + kGoldenRatio), most() - first);
  }

  static bool is_zero(const unsigned char* bytes, std::uint64_t count) noexcept {
    return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte == 0; });
  }

  // With equal timers (§4), as many as `equal_timers` must have been set together.
  bool has(const Timers<Byte>& timers, std::uint64_t hash, std::int64_t after) const noexcept {
    const unsigned k = own_k(p_);
    const unsigned wanted = static_cast<unsigned>(p_.integer(kEqual));
    std::uint64_t codes[kMaxHashes];
    for (unsigned i = 0; i < k; ++i) {
      codes[i] = timers.code(position(hash, i, timers.size()));
      if (codes[i] == 0 || timers.left(codes[i]) <= after) return false;
    }
    if (wanted == 0) return true;
    for (unsigned i = 0; i + wanted <= k; ++i)
      if (std::count(codes + i, codes + k, codes[i]) >= static_cast<std::ptrdiff_t>(wanted))
        return true;
    return false;
  }

  void clear(const Timers<Byte>& timers) const noexcept {
    FilterState& state = timers.state();
    std::memset(static_cast<void*>(&state), 0, state.non_zero > 0 ? bytes_ : sizeof state);
  }

  // Opens another filter if the newest has reached its limit and memory holds one more.
  void make_room() const noexcept {
    if (open == 0) open = 1;
    if (p_.integer(kGrow) == none || open == most()) return;
    const Timers<Byte> timers = newest();
    FilterState& state = timers.state();
    const std::uint64_t limit = p_.integer(kLimit);
    if (p_.integer(kGrow) == cardinality) {
      open += state.keys >= limit;
      return;
    }
    // Timers that have ended may still be counted: sweep them all, but once per tick at most.
    if (state.non_zero >= limit && state.all_swept != clock) {
      timers.sweep(timers.size(), 0);
      state.all_swept = clock;
    }
    open += state.non_zero >= limit;
  }

  bool check(const Timers<Byte>& timers) const noexcept {
    const FilterState& state = timers.state();
    if (state.swept >= timers.size() || state.all_swept > clock ||
        state.last_end > clock + p_.integer(kTicks) || state.keys > kMaxRows)
      return false;
    std::uint64_t non_zero = 0;
    for (std::uint64_t i = 0; i < timers.size(); ++i) {
      const std::uint64_t it = timers.code(i);
      if (it == 0) continue;
      ++non_zero;
      const std::int64_t left = timers.left(it);
      if (left > 0 ? clock + static_cast<std::uint64_t>(left) > state.last_end
                   : !timers.is_swept_in_time(i))
        return false;
    }
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&state) + sizeof state;
    for (std::uint64_t bit = timers.size() * p_.integer(kTimerBits);
         bit < (bytes_ - sizeof state) * 8; ++bit)
      if (bytes[bit / 8] >> bit % 8 & 1) return false;
    return non_zero == state.non_zero;
  }

  const Parameters& p_;
  Byte* body_;
  std::uint64_t bytes_;  // of one filter
};

template <typename State, typename Byte>
Filters<State, Byte> filters(const Parameters& p, BasicSlice<State, Byte> slice) noexcept {
  return {p, slice};
}

// ---- operations

bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept {
  const auto all = filters(p, slice);
  const std::uint64_t now = all.tick_of(element);
  return all.has(element.hash, now > all.clock ? now - all.clock : 0);
}

// A new event may be late: max(what the timers are, min(w, w - (t_i - t_u))).
void insert_unconditionally(const Parameters& p, Slice slice, const Element& element) noexcept {
  const auto all = filters(p, slice);
  std::uint64_t then = all.tick_of(element);
  all.advance(then);
  if (counts_rows(p)) {
    if (all.rows < kMaxRows) ++all.rows;
    then = all.rows / p.integer(kTickLength);
    all.advance(then);
  }
  const std::uint64_t late = all.clock - then;
  if (late < p.integer(kTicks)) all.add(element.hash, p.integer(kTicks) - late);
}

bool insert(const Parameters& p, Slice slice, const Element& element) noexcept {
  const auto all = filters(p, slice);
  all.advance(all.tick_of(element));
  if (all.has(element.hash, 0)) return true;
  insert_unconditionally(p, slice, element);
  return false;
}

// A key without a time had the clock's, which is not known any more: rather accept a repeat.
bool expired(const Parameters& p, const Element& added, const Element& present,
             std::uint64_t since) noexcept {
  if (counts_rows(p)) return since >= p.integer(kWindow);
  if (!is_finite(added.time)) return true;
  return is_finite(present.time) &&
         tick(p, present.time) >= tick(p, added.time) + p.integer(kTicks);
}

void share(const Parameters& p, Slice slice) noexcept { filters(p, slice).share(); }

// Filters that were filled one after the other would have to take turns, unless one takes all.
bool fits(const Parameters& p, ConstSlice into, ConstSlice from) noexcept {
  if (p.integer(kGrow) == none) return true;
  const auto target = filters(p, into), source = filters(p, from);
  if (target.is_idle() || source.is_idle()) return true;
  if (target.sharing != source.sharing) return false;
  if (target.sharing != 0) return target.oldest == source.oldest;
  const FilterState &a = target.newest().state(), &b = source.newest().state();
  const std::uint64_t load = p.integer(kGrow) == density ? a.non_zero + b.non_zero : a.keys + b.keys;
  return target.open == 1 && source.open == 1 && load <= p.integer(kLimit);
}

// The two as if their rows had come by turns, each evenly spread over all: of either the last are
// kept, as many as its share of the rows.
struct Turns {
  std::uint64_t rows;   // of both
  std::uint64_t ticks;  // of a window

  // The ticks until a timer ends, of which `left` were left among `own` rows; 0: it has ended.
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

// All timers are set anew, for another present.
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

// A timer takes the later end.
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

// Filters are merged by age, the newest with the newest.
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

// The share of timers that run, of up to 16384 that are looked at.
template <typename Byte>
double running(const Timers<Byte>& timers) noexcept {
  constexpr std::uint64_t kMaxLooks = 16384;
  const std::uint64_t looks = std::min(timers.size(), kMaxLooks);
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < looks; ++i)
    count += timers.runs(
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * timers.size() / looks), 0);
  return static_cast<double>(count) / static_cast<double>(looks);
}

// As of the latest element. How many keys were ever seen is not known.
Estimate estimate(const Parameters& p, ConstSlice slice) noexcept {
  const auto all = filters(p, slice);
  double fill = 0, none_has = 1;
  for (std::uint64_t i = 0; i < all.open; ++i) {
    const double share = running(all.filter(i));
    fill += share / static_cast<double>(all.most());
    none_has *= 1 - std::pow(share, real_k(p));
  }
  return {fill, 1 - none_has, std::numeric_limits<double>::quiet_NaN()};
}

// On a stream of distinct keys. With a window of time, none is missed before its end; with one of
// rows, those that have left the window of their slice are. Equal timers miss some of the others.
double fnr_at(const Parameters& p, double gap) noexcept {
  const double since = std::max(0.0, gap - 1);
  const double window = static_cast<double>((p.integer(kWindow) + p.slices - 1) / p.slices);
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

// Repeats that all come after a gap. A repeat does not prolong its key's window, so the J-th after
// an accepted row is the next that is accepted, J gaps being the first beyond the window; and the
// window is the shorter in rows of the stream, the more are accepted: all, when the stream begins.
// That it begins with many new keys is otherwise neglected: it is long beside the window.
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

// A new key that is mistaken for a repeat sets no timers. It is found out when the first of the K
// that run for others has ended, if it comes again then: the probability of that.
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

// Of plain windows of rows. Those of a slice hold so many keys, depending on when in a tick they
// begin: accepted ones, and those that are mistaken for them.
Prediction predict(const Parameters& p, const Stream& stream) noexcept {
  constexpr int kPhases = 16;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!counts_rows(p) || p.integer(kGrow) != none || p.integer(kEqual) != 0)
    return {kUnknown, kUnknown};
  const double tick = static_cast<double>(p.integer(kTickLength)),
               longest = static_cast<double>(p.integer(kTicks)) * tick, slices = p.slices;
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
  if (!(stream.repeats() > 0)) return {fpr, kUnknown};
  double fnr = 0;
  for (int i = 0; i < kPhases; ++i) {
    const double window = longest - (tick - 1) * (i + 0.5) / kPhases;
    const AtGap result = at_gap(stream, slices * keys_in(window));
    fnr += result.missed * (1 - fpr) +
           fpr * stream.distinct() / stream.repeats() * found_out(stream, result.window, real_k(p));
  }
  return {fpr, std::min(fnr / kPhases, 1.0)};
}

}  // namespace

const FilterOps timer_ops = {
    .kind = Kind::timer,
    .name = "timer",
    .summary =
        "Bloom filter over a sliding window of time or rows: forgets exactly what has left it",
    .options = kOptions,
    .option_count = sizeof kOptions / sizeof *kOptions,
    .uses_time = always,
    .derive = derive,
    .test = test,
    .insert = insert,
    .expired = expired,
    .merge = merge,
    .check = check,
    .estimate = estimate,
    .fpr_bound = fpr_bound,
    .fnr_at = fnr_at,
    .predict = predict,
    .insert_unconditionally = insert_unconditionally,
    .share = share,
    .fits = fits,
};

}  // namespace streamfilter
