// Filters that hold single keys (lru, timer, sqf, dsqf): their error rates on a stream of uniform
// draws. A repeat is each of the keys seen with equal probability, so the probability that it is
// found is the share of keys held, whichever these are.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/model/stream.hpp"

namespace streamfilter::exact_store_model {

// Number of n keys that `slices` slices of `capacity` each hold. Keys spread unevenly:
// approximately normally distributed.
inline double held(double n, double capacity, double slices) noexcept {
  const double mean = n / slices;
  if (slices <= 1) return std::min(mean, capacity);
  const double deviation = std::sqrt(mean);
  if (!(deviation > 0)) return 0;
  const double z = (capacity - mean) / deviation,
               density = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0)),
               beyond = std::erfc(z / std::sqrt(2.0)) / 2;
  return std::clamp(slices * (mean - deviation * (density - z * beyond)), 0.0, n);
}

// The mean of rate(n), the false-positive rate after n distinct keys, over all new keys (Simpson).
template <typename Rate>
double mean_fpr(double distinct, Rate rate) noexcept {
  constexpr int kSteps = 512;
  double sum = rate(0) + rate(distinct);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * rate(distinct * i / kSteps);
  return sum / (3 * kSteps);
}

// The false-negative rate if held_of(n) of n keys are held, and rate(n) of the others are mistaken
// for one of them.
template <typename Held, typename Rate>
double mean_fnr(const Stream& stream, Held held_of, Rate rate) noexcept {
  if (!(stream.repeats() > 0)) return std::numeric_limits<double>::quiet_NaN();
  const Ages time(stream, 1e-3 * stream.distinct());
  double negatives = 0, repeats = 0, before = 0;
  for (unsigned i = 1; i <= Ages::kSteps; ++i) {
    const double n = stream.distinct_in(time[i]),
                 now = n > 0 ? (1 - std::min(1.0, held_of(n) / n)) * (1 - rate(n)) : 0;
    const double back = time[i] - time[i - 1] - (n - stream.distinct_in(time[i - 1]));
    negatives += back * (now + before) / 2;
    repeats += back;
    before = now;
  }
  return std::clamp(negatives / repeats, 0.0, 1.0);
}

}  // namespace streamfilter::exact_store_model
