#include <boost/math/distributions/binomial.hpp>

#include "core/base/math_policy.hpp"
#include "core/model/blocked_model.hpp"

namespace streamfilter::blocked_model {

constexpr double kBits = 512;  // of a line

double line_fpr(double k, double ones) noexcept {
  double rate = 1;
  for (double i = 0; i < k; ++i) rate *= std::max(0.0, ones - i) / (kBits - i);
  return rate;
}

double blocked_bound(double k, double n, double lines) noexcept {
  constexpr double kFull = 40000;  // keys that leave no bit of a line unset, as good as certainly
  const double mean = n / lines, spread = 12 * std::sqrt(mean);
  if (!(mean < kFull)) return 1;
  const double keys = std::ceil(n);
  const boost::math::binomial_distribution<double, MathPolicy> of_line(keys, 1 / lines);
  // Few keys a line: the largest terms are those of crowded lines, hence the k more.
  const double last = std::min(keys, std::ceil(mean + spread + k));
  double sum = 0;
  for (double j = std::max(1.0, std::floor(mean - spread)); j <= last; ++j)
    sum += pdf(of_line, j) * std::pow(-std::expm1(j * std::log1p(-k / kBits)), k);
  return std::min(sum, 1.0);
}

std::uint64_t best_k_by_bound(double n, double lines, double most) noexcept {
  double k = 1, least = blocked_bound(k, n, lines);
  for (; k < most; ++k) {
    const double next = blocked_bound(k + 1, n, lines);
    if (next >= least) break;
    least = next;
  }
  return static_cast<std::uint64_t>(k);
}

}  // namespace streamfilter::blocked_model
