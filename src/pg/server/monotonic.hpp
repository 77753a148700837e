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

}  // namespace streamfilter::pg
