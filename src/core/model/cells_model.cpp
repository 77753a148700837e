#include "core/model/cells_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/layer_wall.hpp"

namespace streamfilter::cells_model {
namespace {

// P(fewer than `max` successes in n trials of probability p), for real n.
double fewer(unsigned max, double n, double p) noexcept {
  double term = std::exp(n * std::log1p(-p)), sum = 0;
  for (unsigned i = 0; i < max && (i == 0 || n > i - 1); ++i) {
    sum += term;
    term *= (n - i) / (i + 1) * p / (1 - p);
  }
  return std::min(sum, 1.0);
}

// The probability that a cell set to `max` so many elements ago is not zero. Value j falls at the
// rate taken/j, if by value: the sum of `max` exponential times of different rates.
double left(const Setting& s, double elements) noexcept {
  if (elements <= 0) return 1;
  const double p = std::min(s.taken, 1 - 1e-12);
  if (!s.by_value) return fewer(s.max, elements, p);
  double sum = 0;
  for (unsigned i = 1; i <= s.max; ++i) {
    double weight = 1;
    for (unsigned j = 1; j <= s.max; ++j)
      if (j != i) weight *= static_cast<double>(i) / (static_cast<double>(i) - j);
    sum += weight * std::exp(elements / i * std::log1p(-p));
  }
  return std::clamp(sum, 0.0, 1.0);
}

}  // namespace

Prediction predict(const Setting& s, const Stream& stream) noexcept {
  const Ages age(stream, 1e-3 * std::min(s.m / s.k, 1 / s.taken));
  double set = 0;  // probability that others have left the cell set
  double unset_before = 1, left_before = 1, positive_before = 0, missed_before = 0;
  double positives = 0, fresh_rows = 0, negatives = 0, repeats = 0;
  for (unsigned i = 1; i <= Ages::kSteps; ++i) {
    // The element itself does not decrement for its test: half an element less.
    const double not_set = std::exp(-s.k / s.m * stream.distinct_in(age[i])),
                 still = left(s, age[i] - 0.5);
    set += (unset_before - not_set) * (left_before + still) / 2;
    const double positive = std::pow(set, s.k),
                 missed = 1 - std::pow(std::min(1.0, set + not_set * still), s.k);

    const double fresh = stream.distinct_in(age[i]) - stream.distinct_in(age[i - 1]);
    positives += fresh * (positive + positive_before) / 2;
    fresh_rows += fresh;

    const double part = stream.lags_between(age[i - 1], age[i]),
                 lag = age[i - 1] + part * (age[i] - age[i - 1]);
    const double back = (stream.fresh(age[i - 1]) - stream.fresh(age[i])) * (stream.rows() - lag);
    negatives += back * (missed_before + part * (missed - missed_before));
    repeats += back;

    unset_before = not_set;
    left_before = still;
    positive_before = positive;
    missed_before = missed;
  }
  return {positives / fresh_rows, stream.repeats() > 0 && repeats > 0
                                      ? negatives / repeats
                                      : std::numeric_limits<double>::quiet_NaN()};
}

}  // namespace streamfilter::cells_model
