#include <boost/math/special_functions/beta.hpp>

#include "core/base/math_policy.hpp"
#include "core/model/stable_model.hpp"

namespace streamfilter::stable_model {

double stable_point(double max, double k, double p, double m) noexcept {
  if (p <= 0) return 0;
  return std::pow(1 / (1 + 1 / (p * (1 / k - 1 / m))), max);
}

double fpr_bound(double max, double k, double p, double m) noexcept {
  return std::pow(1 - stable_point(max, k, p, m), k);
}

double decrements(double fps, double max, double k, double m) noexcept {
  const double zeros = 1 - std::pow(fps, 1 / k);
  return 1 / ((1 / std::pow(zeros, 1 / max) - 1) * (1 / k - 1 / m));
}

double effective_cells(double k, double m) noexcept {
  return k / m < 1e-4 ? std::numeric_limits<double>::infinity() : m;
}

std::uint64_t whole_decrements(double fps, double max, double k, double m) noexcept {
  const double p = decrements(fps, max, k, effective_cells(k, m));
  if (!(p > 0 && p < 1e18)) return 0;
  return std::max(saturate<std::uint64_t>(std::ceil(p * (1 - 1e-12))), std::uint64_t{1});
}

// P(T <= n) for the time T of the max-th success in trials of probability p.
static double negative_binomial_cdf(double max, double n, double p) noexcept {
  if (n < max) return 0;
  return boost::math::ibeta(max, n - max + 1, std::min(p, 1.0), MathPolicy());
}

double pr_zero(double gap, double k_set, double p_taken, double max) noexcept {
  if (gap < max || p_taken <= 0) return 0;
  const double keep = std::exp(gap * std::log1p(-k_set));  // (1-k)^gap: not set again
  // A cell set again on the way is zero only if it was emptied after the last setting (Eq. 10-11).
  // Summed over the time of that setting, the terms form a tilted negative binomial distribution.
  const double touched = p_taken + k_set - p_taken * k_set;
  const double tilt = std::pow(p_taken * (1 - k_set) / touched, max);
  const double set_again = tilt * negative_binomial_cdf(max, gap - 1, touched) -
                           keep * negative_binomial_cdf(max, gap - 1, p_taken);
  const double not_set = keep * negative_binomial_cdf(max, gap, p_taken);  // Eq. 12-13
  return std::clamp(set_again + not_set, 0.0, 1.0);
}

double fnr(double gap, double max, double k, double p, double m) noexcept {
  const double zero = pr_zero(gap, k / m, p / m, max);
  return -std::expm1(k * std::log1p(-zero));
}

unsigned best_k(double fps, double max) noexcept {
  constexpr double kTestCells = 1e5, kTestGap = 5000;
  unsigned best = 1;
  double least = 2;
  for (unsigned k = 1; k <= 20; ++k) {
    const double p = decrements(fps, max, k, kTestCells);
    if (!(p >= 0 && p <= kTestCells)) continue;
    const double rate = fnr(kTestGap, max, k, p, kTestCells);
    if (rate < least) {
      least = rate;
      best = k;
    }
  }
  return best;
}

unsigned best_max(double fps, double gap, double bits) noexcept {
  unsigned best = 1;
  double least = 2;
  for (unsigned cell_bits = 1; cell_bits <= 3; ++cell_bits) {
    const double max = (1u << cell_bits) - 1, m = bits / cell_bits;
    const double k = best_k(fps, max);
    const double p = decrements(fps, max, k, m);
    if (!(p >= 0 && p <= m)) continue;
    const double rate = fnr(gap, max, k, p, m);
    if (rate < least) {
      least = rate;
      best = static_cast<unsigned>(max);
    }
  }
  return best;
}

}  // namespace streamfilter::stable_model

// ---- cells of other kinds -----------------------------------------------------------------------

namespace streamfilter::cells_model {
// P(fewer than `max` successes in n trials of probability p), for real n.
static double fewer(unsigned max, double n, double p) noexcept {
  double term = std::exp(n * std::log1p(-p)), sum = 0;
  for (unsigned i = 0; i < max && (i == 0 || n > i - 1); ++i) {
    sum += term;
    term *= (n - i) / (i + 1) * p / (1 - p);
  }
  return std::min(sum, 1.0);
}

// The probability that a cell set to `max` so many elements ago is not zero. Value j falls at the
// rate taken/j, if by value: the sum of `max` exponential times of different rates.
static double left(const Setting& s, double elements) noexcept {
  if (elements <= 0) return 1;
  const double p = std::min(s.taken, 1 - 1e-12);
  if (!s.by_value) return fewer(s.max, elements, p);
  double sum = 0;
  for (unsigned i = 1; i <= s.max; ++i) {
    double weight = 1;
    for (unsigned j = 1; j <= s.max; ++j)
      if (j != i) weight *= to_real(i) / (to_real(i) - j);
    sum += weight * std::exp(elements / i * std::log1p(-p));
  }
  return std::clamp(sum, 0.0, 1.0);
}

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
