// A clock that nobody can set, equal in all processes of a server, to measure durations.
#pragma once

#include <ctime>

namespace streamfilter::pg {

// µs since a fixed time, usually the system's start.
inline int64 monotonic_us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// Such a time, so many milliseconds later.
inline int64 add_ms(int64 time, int64 ms) { return time + ms * 1000; }

// Milliseconds from one such time to another, rounded up; 0 if it is not later.
inline int64 ms_until(int64 from, int64 to) { return to <= from ? 0 : (to - from + 999) / 1000; }

}  // namespace streamfilter::pg
