// Formulas of papers that no filter needs, over the models of the core.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/model/importance_model.hpp"
#include "core/model/slicing_model.hpp"
#include "core/model/timing_model.hpp"

namespace bench {

// Bhoraskar et al., Corollaries III.4 and III.8: the limit (1 - V_0)^K of the false-positive rate.
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

}  // namespace bench
