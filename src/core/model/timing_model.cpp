#include "core/model/timing_model.hpp"

#include "core/base/math_policy.hpp"
#include "core/format/layout.hpp"

namespace streamfilter::timing_model {

double rate(double k, double n, double m) noexcept {
  return std::pow(-std::expm1(k * n * std::log1p(-1 / m)), k);
}

// The integral of 1 - Eq. 1 up to n, by Simpson's rule.
double accepted(double k, double n, double m) noexcept {
  constexpr int kSteps = 128;
  double sum = rate(k, n, m);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * rate(k, n * i / kSteps, m);
  return n * (1 - sum / (3 * kSteps));
}

double keys_for(double k, double count, double m) noexcept {
  double low = count, high = count * 2;
  if (accepted(k, high, m) < count) return std::numeric_limits<double>::infinity();
  for (int round = 0; round < 50; ++round) {
    const double middle = (low + high) / 2;
    (accepted(k, middle, m) < count ? low : high) = middle;
  }
  return high;
}

std::uint64_t best_k(double n, double m) noexcept {
  constexpr double kMax = 16;
  const double exact = std::log(2) * m / n;
  const double low = std::clamp(std::floor(exact), 1.0, kMax);
  const double high = std::clamp(std::ceil(exact), 1.0, kMax);
  return static_cast<std::uint64_t>(rate(low, n, m) <= rate(high, n, m) ? low : high);
}

// The timers that are still the key's own are equal; there are fewer than `equal` of them with the
// probability of a binomial count. Others that happen to be equal are neglected.
double equal_timers_fnr(unsigned k, unsigned equal, double overwritten) noexcept {
  if (overwritten <= 0) return 0;
  double sum = 0, ways = 1;
  for (unsigned own = 0; own < equal && own <= k; ++own) {
    sum += ways * std::pow(1 - overwritten, own) * std::pow(overwritten, k - own);
    ways *= to_real(k - own) / (own + 1);
  }
  return std::min(sum, 1.0);
}

double rate_of_filters(double p, double j) noexcept {
  return j > 0 ? -std::expm1(j * std::log1p(-p)) : 0;
}

double share_of_rate(double fpr, double j) noexcept { return -std::expm1(std::log1p(-fpr) / j); }

double rate_of_one(double fpr, double probes, double j) noexcept {
  return share_of_rate(std::pow(fpr, 1 / probes), j);
}

std::uint64_t growing_k(double fpr, Slicing slicing, double j) noexcept {
  constexpr double kMax = 16;  // more would cost time and save next to nothing
  const double rate = slicing == Slicing::horizontal ? share_of_rate(fpr, j) : fpr;
  return saturate<std::uint64_t>(std::clamp(std::round(-std::log2(rate)), 1.0, kMax));
}

double density_limit(double p, double k, double m) noexcept { return m * std::pow(p, 1 / k); }

static double keys_at(double p, double k, double m) noexcept {
  return keys_of_share(std::pow(p, 1 / k), m, k);
}

double cardinality_limit(double p, double k, double m) noexcept {
  return accepted(k, keys_at(p, k, m), m);
}

// Where keys have several probes, a slice cannot tell which are new, and counts all.
std::uint64_t growing_limit(bool by_density, double fpr, double j, double probes, double k,
                            double m) noexcept {
  const double one = rate_of_one(fpr, probes, j);
  const double limit = by_density    ? density_limit(one, k, m) - k
                       : probes <= 1 ? cardinality_limit(one, k, m)
                                     : keys_at(one, k, m);
  return std::max(saturate<std::uint64_t>(limit), std::uint64_t{1});
}

}  // namespace streamfilter::timing_model
