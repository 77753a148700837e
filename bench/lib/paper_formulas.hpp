// Formulas of papers that no filter needs, over the models of the core.
#pragma once

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "core/model/importance_model.hpp"
#include "core/model/slicing_model.hpp"
#include "core/model/timing_model.hpp"

namespace bench {

// Bhoraskar et al.: V_0, the limit of the share of zeros on a stream of distinct keys.
inline double zeros(const streamfilter::importance_model::Levels& levels,
                    const streamfilter::importance_model::Setting& setting) {
  double v[streamfilter::importance_model::kMaxLevels + 1];
  stationary(levels, setting, v);
  return v[0];
}

// Corollaries III.4 and III.8: the limit (1 - V_0)^K of the false-positive rate.
inline double fpr_limit(const streamfilter::importance_model::Levels& levels,
                        const streamfilter::importance_model::Setting& setting) {
  return std::pow(1 - zeros(levels, setting), setting.k);
}

// Koloniari et al., §4: the mean of equal_timers_fnr for repeats spread evenly over the window,
// where a share `fill` of all timers runs. A timer set at age a (0: now, 1: one window ago) has
// been left alone with probability (1 - fill)^a.
inline double mean_equal_timers_fnr(unsigned k, unsigned equal, double fill) {
  constexpr int kSteps = 1000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i)
    sum += streamfilter::timing_model::equal_timers_fnr(
        k, equal, -std::expm1((i + 0.5) / kSteps * std::log1p(-fill)));
  return sum / kSteps;
}

// Their Eq. 1 for few cells (tens): it takes the share of set cells for its mean, but the mean of
// its k-th power is larger. Here with the variance of that share, to the second order: of m cells,
// t = kn throws leave each empty with probability q^t, and two of them with (1 - 2/m)^t.
inline double rate_of_few_cells(double k, double n, double m) noexcept {
  const double t = k * n, empty = std::exp(t * std::log1p(-1 / m)), set = 1 - empty;
  if (m < 3 || !(set > 0)) return streamfilter::timing_model::rate(k, n, m);
  const double both = std::exp(t * std::log1p(-2 / m)),
               variance = (1 - 1 / m) * both + empty / m - empty * empty;
  return std::min(1.0, std::pow(set, k) + k * (k - 1) / 2 * std::pow(set, k - 2) * variance);
}

// Their §3.2: f of all slices cannot be reached. A probe of a new key that can be reached says
// `seen` with probability probe_rate: the share of bits set, for one bit a probe.
struct Failures {
  double probes;      // of a key (k1)
  double probe_rate;  // for a horizontal filter, its false-positive rate
  double slices;      // all of them
  double part;        // how many of them the probes of one key are spread over
  double lost;        // f
};

struct ErrorRates {
  double fpr, fnr;
};

inline double log_choose(double n, double k) noexcept {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// P(Bin(n, p) >= least).
inline double at_least(double least, double n, double p) noexcept {
  if (least <= 0) return 1;
  if (least > n) return 0;
  return boost::math::cdf(
      boost::math::complement(boost::math::binomial_distribution(n, p), least - 1));
}

// Where a probe of a key is lost with probability `lost`.
inline ErrorRates errors_at(double lost, double probes, double rate, streamfilter::LostRule rule,
                            unsigned least) noexcept {
  const double reached = 1 - lost;
  switch (rule) {
    case streamfilter::LostRule::duplicate: return {std::pow(lost + reached * rate, probes), 0};
    case streamfilter::LostRule::distinct:
      return {std::pow(reached * rate, probes), 1 - std::pow(reached, probes)};
    case streamfilter::LostRule::hybrid:
      return {at_least(least, probes, reached * rate), 1 - at_least(least, probes, reached)};
    case streamfilter::LostRule::votes: break;
  }
  // All reached probes say so, of `probes` that are each lost, or reached and set: a binomial count
  // of those reached among them.
  const double passes = lost + reached * rate;
  const double fpr =
      passes > 0 ? std::pow(passes, probes) * at_least(least, probes, reached * rate / passes) : 0;
  return {fpr, 1 - at_least(least, probes, reached)};
}

// `least` is the x of votes:x and hybrid:x. Averaged over which slices are lost, that is over how
// many of the part of a key are: of vertical filters f, of a horizontal one none or its only one.
// The printed formulas lack binomial coefficients, and Eq. 7 takes the bits of one key for spread
// over all slices.
inline ErrorRates errors(const Failures& failures, streamfilter::LostRule rule,
                         unsigned least = 0) noexcept {
  const double slices = failures.slices, part = failures.part, lost = failures.lost;
  ErrorRates sum{0, 0};
  const double first = std::max(0.0, lost - (slices - part)), last = std::min(part, lost);
  for (double of_group = first; of_group <= last; ++of_group) {
    const double weight =
        std::exp(log_choose(part, of_group) + log_choose(slices - part, lost - of_group) -
                 log_choose(slices, lost));
    const ErrorRates one =
        errors_at(of_group / part, failures.probes, failures.probe_rate, rule, least);
    sum.fpr += weight * one.fpr;
    sum.fnr += weight * one.fnr;
  }
  return sum;
}

}  // namespace bench
