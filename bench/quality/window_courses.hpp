// How far back a filter remembers, on an endless stream of new keys: the false-negative rate by
// lag, and the bits that each key of a window costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/lib/figures.hpp"

namespace bench {

constexpr double kCourseBits = 1 << 18;

// FNR at lags 4 … a third of the bits, evenly on a logarithmic scale.
struct Course {
  std::string setting;
  double fpr = 0;
  std::vector<double> lag, fnr;

  // The rate at any lag, interpolated between measured ones as a power of the lag while they are
  // above zero.
  double at(double wanted) const {
    const auto above = std::lower_bound(lag.begin(), lag.end(), wanted);
    if (above == lag.begin()) return fnr.front() * wanted / lag.front();
    if (above == lag.end()) return fnr.back();
    const auto i = static_cast<std::size_t>(above - lag.begin());
    if (fnr[i - 1] > 0 && fnr[i] > 0)
      return fnr[i - 1] * std::pow(fnr[i] / fnr[i - 1],
                                   std::log(wanted / lag[i - 1]) / std::log(lag[i] / lag[i - 1]));
    return fnr[i - 1] + (wanted - lag[i - 1]) / (lag[i] - lag[i - 1]) * (fnr[i] - fnr[i - 1]);
  }
  // Over lags 1 … to.
  double mean(double to) const {
    constexpr int kSteps = 8;  // from one measured lag to the next
    double area = fnr.front() * std::fmin(to, lag.front()) / 2;
    for (std::size_t i = 1; i < lag.size() && lag[i - 1] < to; ++i) {
      const double step = (std::fmin(lag[i], to) - lag[i - 1]) / kSteps;
      for (int n = 0; n < kSteps; ++n) area += step * at(lag[i - 1] + (n + .5) * step);
    }
    return area / to;
  }

  double edge_at(double bits_per_key) const { return at(kCourseBits / bits_per_key); }
  double mean_at(double bits_per_key) const { return mean(kCourseBits / bits_per_key); }

  // Bits per key of the largest window with this rate.
  double edge_bits(double rate) const {
    return least_bits([&](double bits) { return edge_at(bits) <= rate; });
  }
  double mean_bits(double rate) const {
    return least_bits([&](double bits) { return mean_at(bits) <= rate; });
  }

 private:
  template <typename Keeps>
  double least_bits(Keeps keeps) const {
    double low = kCourseBits / lag.back(), high = kCourseBits;
    if (!keeps(high)) return INFINITY;
    for (unsigned i = 0; i < 60; ++i) {
      const double middle = std::sqrt(low * high);
      (keeps(middle) ? high : low) = middle;
    }
    return high;
  }
};

constexpr std::uint64_t course_rows(bool quick) { return quick ? 1u << 18 : 1u << 21; }

// Calls insert(hash) and test(hash). Rates of 1 % have a standard error of a tenth of their value,
// with `quick` of a quarter.
template <typename Tested>
Course measure_course(Tested& filter, bool quick) {
  constexpr unsigned kLags = 192;
  constexpr double kFirst = 4, kLast = kCourseBits / 3;
  Course course;
  for (unsigned i = 0; i < kLags; ++i)
    course.lag.push_back(std::floor(kFirst * std::pow(kLast / kFirst, i / (kLags - 1.))));
  std::vector<double> tests(kLags), missed(kLags);
  const std::uint64_t warm = 2 * static_cast<std::uint64_t>(kCourseBits),
                      count = course_rows(quick);
  const auto hash_of = [](std::uint64_t key) { return streamfilter::hash_word(key, 0); };
  double positives = 0;
  for (std::uint64_t key = 0; key < warm + count; ++key) {
    const bool seen = filter.insert(hash_of(key));
    if (key < warm) continue;
    positives += seen;
    const auto lag = static_cast<std::size_t>(streamfilter::mix64(key) % kLags);
    tests[lag] += 1;
    missed[lag] += !filter.test(hash_of(key - static_cast<std::uint64_t>(course.lag[lag])));
  }
  course.fpr = positives / static_cast<double>(count);
  for (unsigned i = 0; i < kLags; ++i) course.fnr.push_back(missed[i] / tests[i]);
  return course;
}

// With more false positives, the rate is not kept: four standard errors.
inline bool keeps_fpr(const Course& course, double fpr, bool quick) {
  return course.fpr <= fpr + 4 * std::sqrt(fpr / static_cast<double>(course_rows(quick)));
}

}  // namespace bench
