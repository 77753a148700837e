#include "core/model/capped_model.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/poisson.hpp>
#include <boost/math/special_functions/binomial.hpp>
#include <cmath>

#include "core/base/math_policy.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::capped_model {
namespace {

constexpr double kBits = 512;  // of a line
constexpr unsigned kMaxDerivedHashes = 16;

double ways(double n, double i) noexcept {
  return boost::math::binomial_coefficient<double>(static_cast<unsigned>(n),
                                                   static_cast<unsigned>(i), MathPolicy());
}

// How a bit of a key changes with each new key of its line, seen alone.
struct Chain {
  explicit Chain(const Setting& setting) noexcept
      : cleared(clearing(setting)), again(setting.k / kBits) {}

  double decay() const noexcept { return 1 - cleared - again; }
  double at_last() const noexcept { return again / (cleared + again); }  // set by anyone

  double cleared, again;
};

}  // namespace

double line_fpr(double k, double ones) noexcept {
  double rate = 1;
  for (double i = 0; i < k; ++i) rate *= std::max(0.0, ones - i) / (kBits - i);
  return rate;
}

// By inclusion and exclusion over the bits that are not set: all i given ones are missed by one key
// with probability C(512-i, k)/C(512, k), and by a Poisson number of keys with e to the power of
// -keys times the rest.
double blocked_fpr(double k, double keys) noexcept {
  double sum = 0, missed = 1;
  for (double i = 0; i <= k; ++i) {
    const double term = ways(k, i) * std::exp(-keys * (1 - missed));
    sum += std::fmod(i, 2) == 0 ? term : -term;
    missed *= (kBits - k - i) / (kBits - i);
  }
  return std::clamp(sum + std::ldexp(1e-16, static_cast<int>(k)), 0.0, 1.0);
}

unsigned best_k(double keys) noexcept {
  unsigned best = 1;
  for (unsigned k = 2; k <= kMaxDerivedHashes; ++k)
    if (blocked_fpr(k, keys) < blocked_fpr(best, keys)) best = k;
  return best;
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

unsigned most_ones(double fpr, unsigned k) noexcept {
  unsigned low = 0, high = static_cast<unsigned>(kBits) + 1;  // keeps it, does not
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (line_fpr(k, middle) <= fpr ? low : high) = middle;
  }
  return low;
}

// The new key does not have the bit among its own; so many of its bits are zeros, and as many of
// the ones that are not its own are cleared.
double clearing(const Setting& setting) noexcept {
  const auto [k, ones] = setting;
  const double others = kBits - 1, zeros = kBits - ones;
  double sum = 0, probability = 1;  // of d zeros: a hypergeometric distribution
  for (double i = 0; i < k; ++i) probability *= (others - zeros - i) / (others - i);
  for (double d = 0; d <= std::min(k, zeros); ++d) {
    sum += probability * d / (ones - k + d);
    probability *= (zeros - d) * (k - d) / ((d + 1) * (others - zeros - k + d + 1));
  }
  return (1 - k / kBits) * sum;
}

double fnr(const Setting& setting, double keys) noexcept {
  const Chain chain(setting);
  const double set = chain.at_last() + (1 - chain.at_last()) * std::pow(chain.decay(), keys);
  return 1 - std::pow(set, setting.k);
}

// The power of fnr() multiplied out, for each term has a simple mean.
double mean_fnr(const Setting& setting, double keys) noexcept {
  const Chain chain(setting);
  const double rest = chain.at_last(), k = setting.k;
  double sum = 0;
  for (double i = 0; i <= k; ++i)
    sum += ways(k, i) * std::pow(rest, k - i) * std::pow(1 - rest, i) *
           -std::expm1(-keys * (1 - std::pow(chain.decay(), i)));
  return std::clamp(sum, 0.0, 1.0);
}

double mean_zeros(const Setting& setting, double keys) noexcept {
  const Chain chain(setting);
  return (1 - chain.at_last()) * -std::expm1(-keys * (1 - chain.decay()));
}

double filling(const Setting& setting) noexcept {
  return setting.ones < kBits ? std::log1p(-setting.ones / kBits) / std::log1p(-setting.k / kBits)
                              : kBits * kBits;
}

double fnr_after(const Setting& setting, double keys, double all) noexcept {
  const double full = filling(setting);
  const double most = all + 10 * std::sqrt(all) + 30;
  if (most > 20 * full + 1000) return mean_fnr(setting, keys);
  const boost::math::poisson_distribution<double, MathPolicy> number(all);
  double sum = 0;
  for (double n = std::floor(full) + 1; n <= most; ++n)
    sum += pdf(number, n) * fnr(setting, std::min(keys, n - full));
  return std::clamp(sum, 0.0, 1.0);
}

}  // namespace streamfilter::capped_model
