// The time of elements in ticks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

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

// Begin of a tick; not finite for the first one, which no event has.
inline std::int64_t begin_of_tick(std::uint64_t tick, std::uint64_t length) noexcept {
  return static_cast<std::int64_t>(tick * length - (std::uint64_t{1} << 63));
}

}  // namespace streamfilter
