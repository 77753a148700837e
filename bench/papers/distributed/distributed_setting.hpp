// Shared by the figures of Koloniari et al. 2011: scale, sizes, and the stream in place of the web
// log.
#pragma once

#include <cmath>

#include "bench/lib/figures.hpp"
#include "bench/lib/streams.hpp"

namespace bench::distributed {

using namespace streamfilter;

using Wide = unsigned long long;

inline constexpr unsigned kTimers = 8;  // k of figure 9
inline constexpr double kRate = .02;    // the false-positive rate that filters are sized for
inline constexpr std::uint32_t kSlices = 40;
// The slot of timing_bloom.cpp that holds the timers of one filter.
inline constexpr unsigned kCells = 11;

struct Scale {
  std::uint64_t events, distinct, window;  // of figure 9
  std::uint64_t asked;                     // repeats of the check of the formula
  std::uint64_t slots;                     // of figures 10 and 11
};

// m that has rate p with n keys (Eq. 1).
inline double timers_for(double k, double n, double p) {
  return -k * n / std::log1p(-std::pow(p, 1 / k));
}

// The number of keys to draw from, so that `events` have `distinct` of them.
inline std::uint64_t universe_for(std::uint64_t events, std::uint64_t distinct) {
  std::uint64_t low = distinct, high = 100 * distinct;
  while (high - low > low / 200) {
    const std::uint64_t middle = low + (high - low) / 2;
    Zipf stream(middle, 1, 1);
    SeenKeys truth(middle);
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < events; ++i) found += !truth.is_repeat(stream.next());
    (found < distinct ? low : high) = middle;
  }
  return high;
}

// The mean number of distinct keys among the events of a window.
inline double live_keys(std::uint64_t universe, std::uint64_t window) {
  constexpr unsigned kWindows = 20;
  Zipf stream(universe, 1, 2);
  double sum = 0;
  for (unsigned i = 0; i < kWindows; ++i) {
    SeenKeys truth(universe);
    for (std::uint64_t event = 0; event < window; ++event) sum += !truth.is_repeat(stream.next());
  }
  return sum / kWindows;
}

}  // namespace bench::distributed
