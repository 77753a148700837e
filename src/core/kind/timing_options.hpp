// For the files of kind timer: the parameters, and what is derived from them.
#pragma once

#include "core/kind/filter_kind.hpp"
#include "core/model/slicing_model.hpp"

namespace streamfilter::timing {

enum Word : unsigned {
  kWindow,    // and its unit
  kTick = 2,  // and its unit
  kK = 4,
  kEqual,
  kGrow,
  kSize,
  kTicks,  // derived: w
  kTimerBits,
  kFilters,     // maximum number in a slice
  kCells,       // m of one filter
  kLimit,       // of its running timers or keys
  kTickLength,  // in microseconds, or accepted rows of one slice
  kLateness,    // and its unit
};

enum Grow : std::uint64_t { none, density, cardinality };

constexpr unsigned kMaxHashes = 32;

inline bool counts_rows(const Parameters& p) noexcept { return p.integer(kWindow + 1) != 0; }

// Ticks that keys are kept for late events.
inline std::uint64_t late_ticks(const Parameters& p) noexcept {
  return (p.integer(kLateness) + p.integer(kTickLength) - 1) / p.integer(kTickLength);
}

// The timers of a key in a slice: all k, or fewer if it lies in several slices.
inline unsigned own_k(const Parameters& p) noexcept {
  return static_cast<unsigned>(bits_per_probe(p, p.integer(kK)));
}

// The state of a filter in a slice, in front of its timers.
struct FilterState {
  std::uint64_t keys;       // keys added
  std::uint64_t non_zero;   // timers that run or have not been swept yet
  std::uint64_t last_end;   // tick at which the last timer ends
  std::uint64_t swept;      // next timer to sweep
  std::uint64_t all_swept;  // tick at which all timers were last swept at once
};
static_assert(sizeof(FilterState) == 40);

inline std::uint64_t filter_bytes(const Parameters& p) noexcept {
  const std::uint64_t body = body_bytes(p);
  return p.integer(kGrow) == none ? body
                                  : std::min(body, p.integer(kSize) / p.slices & ~std::uint64_t{7});
}

inline double real_k(const Parameters& p) noexcept { return own_k(p); }
inline double real_m(const Parameters& p) noexcept { return to_real(p.integer(kCells)); }

inline double filters(const Parameters& p) noexcept { return to_real(p.integer(kFilters)); }

extern const OptionSpec kOptions[8];
bool derive(Definition& definition, Problem& problem) noexcept;
slicing_model::SlicingShape shape_of(const Parameters& p) noexcept;
// The greatest number of live keys in the slices that a key can be in; infinity: unknown.
double live_keys(const Parameters& p) noexcept;
// With `grow`: the number of keys that a filter takes before the next one opens.
double keys_of_one(const Parameters& p) noexcept;
double fpr_bound(const Parameters& p) noexcept;

}  // namespace streamfilter::timing

// Windows of time.
//
// An event is judged by its own time: it is a repeat if its key is kept with a time that differs
// from its own by less than the window, whichever is the later one. A slice's clock is the latest
// time of its events. An event that is behind it by more than `lateness` is late: it is never a
// repeat, and it is remembered with its own time if that is still within reach. So that every event
// in time meets the keys that it repeats, they are kept for window + lateness.
//
// One time a key is enough, the latest one: since `lateness` is no longer than the window, an event
// in time that is near an earlier time of its key is near all that came after, too.
//
// Times are compared in ticks, so a repeat may come up to a tick after the window.

namespace streamfilter {

constexpr std::uint64_t kMaxTicks = std::uint64_t{1} << 30;  // in a window

// Ticks are unsigned and counted from the earliest possible time. They stay so far below their
// maximum that additions never wrap around.
constexpr std::uint64_t kLastTick = ~std::uint64_t{0} - 2 * kMaxTicks;

inline bool is_finite(std::int64_t time) noexcept {
  return time != std::numeric_limits<std::int64_t>::min() &&
         time != std::numeric_limits<std::int64_t>::max();
}

// `length` in microseconds.
inline std::uint64_t tick_at(std::int64_t time, std::uint64_t length) noexcept {
  const std::uint64_t since = static_cast<std::uint64_t>(time) + (std::uint64_t{1} << 63);
  return std::min(since / length, kLastTick);
}

// That of the latest possible time.
inline std::uint64_t last_tick(std::uint64_t length) noexcept {
  return std::min(~std::uint64_t{0} / length, kLastTick);
}

// Begin of a tick; not finite for the first one, which no event has.
inline std::int64_t begin_of_tick(std::uint64_t tick, std::uint64_t length) noexcept {
  return static_cast<std::int64_t>(tick * length - (std::uint64_t{1} << 63));
}

// True if two ticks are in one window.
inline bool are_near(std::uint64_t a, std::uint64_t b, std::uint64_t near) noexcept {
  return a + near - b <= 2 * near;
}

inline bool is_late(std::uint64_t tick, std::uint64_t clock, std::uint64_t late) noexcept {
  return tick < clock && clock - tick > late;
}

// Is an event a repeat of its key's `kept` one, with `since` accepted rows in between? The clock
// that stood in for a missing time is not known any more: better accept a repeat.
inline bool are_in_window(const WindowTicks& window, const Element& kept, const Element& event,
                          std::uint64_t since) noexcept {
  if (window.rows != 0) return since < window.rows;
  if (window.length == 0) return true;
  return is_finite(kept.time) &&
         (!is_finite(event.time) || are_near(tick_at(event.time, window.length),
                                             tick_at(kept.time, window.length), window.near));
}

inline std::uint64_t ticks_of(std::uint64_t time, std::uint64_t length) noexcept {
  return (time + length - 1) / length;
}

inline bool check_lateness(const Definition& definition, unsigned window, unsigned lateness,
                           Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  if (!definition.has(lateness)) return true;
  if (definition.has(window) && p.integer(window + 1) == 0 && p.integer(lateness + 1) == 0) {
    if (p.integer(lateness) <= p.integer(window)) return true;
    problem.set(Error::unsupported, "option lateness exceeds option window");
    return problem.add_hint(
        "Make the window as long as lateness, or leave lateness out if late events may pass.");
  }
  problem.set(Error::conflict, "option lateness needs a window of time");
  return problem.add_hint("It is a time, too: how late an event may come and still be known.");
}

}  // namespace streamfilter
