#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/poisson.hpp>
#include <boost/math/special_functions/binomial.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include "core/base/math_policy.hpp"
#include "core/model/capped_model.hpp"

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

// ---- before the steady state --------------------------------------------------------------------

// The error rates of capped over a stream. A row counts by the zeros that it turns into ones, for
// as many ones are cleared for it: a new key's bits are zeros as often as any, those of a repeat
// are if they were cleared since its last sight. So the rate at which bits are cleared depends on
// the share of bits lost, an integral over the repeats' lags of what was cleared since; it is
// solved step by step.

namespace {

// The false-positive rate of a line that has got so many keys, below its cap; the ones vary a
// little, as bins that are hit at random do.
double rate_of_keys(double k, double keys) noexcept {
  const double zeros = std::exp(keys * std::log1p(-k / kBits)), load = k * keys / kBits,
               ones = kBits * (1 - zeros), variance = kBits * zeros * (1 - (1 + load) * zeros);
  return std::min(
      1.0, line_fpr(k, ones) * (1 + k * (k - 1) / 2 * std::max(0.0, variance) / (ones * ones)));
}

// The mean over lines when they have got a Poisson number of keys.
double rate_after(const Setting& setting, double keys) noexcept {
  const double capped = line_fpr(setting.k, setting.ones), full = filling(setting),
               spread = 8 * std::sqrt(keys) + 8;
  if (!(keys > 0)) return 0;
  if (keys - spread > full) return capped;
  const boost::math::poisson_distribution<double, MathPolicy> number(keys);
  double sum = 0;
  for (double n = std::max(1.0, std::floor(keys - spread)); n <= keys + spread; ++n)
    sum += pdf(number, n) * (n < full ? std::min(capped, rate_of_keys(setting.k, n)) : capped);
  return std::min(sum, 1.0);
}

// The repeats by their lag: `share` of all rows have that lag when the stream is older than it.
struct Lags {
  static constexpr unsigned kGroup = 8, kCount = Ages::kSteps / kGroup;

  explicit Lags(const Stream& stream) noexcept {
    const Ages age(stream, 1e-3 * stream.distinct());
    for (unsigned i = 0; i < kCount; ++i) {
      const double from = age[i * kGroup], to = age[(i + 1) * kGroup];
      at[i] = from + stream.lags_between(from, to) * (to - from);
      share[i] = stream.fresh(from) - stream.fresh(to);
    }
  }

  double at[kCount], share[kCount];
};

// Lines that get `load` times as many keys as the mean of all lines.
class Course {
 public:
  Course(const Setting& setting, const Stream& stream, const Lags& lags, double load) noexcept
      : setting_(setting), stream_(stream), lags_(lags), load_(load) {
    const Ages age(stream, 1e-2 * stream.distinct());
    for (unsigned i = 0; i <= kSteps; ++i) time_[i] = age[i * (Ages::kSteps / kSteps)];
    const double full = filling(setting);
    for (unsigned i = 1; i <= kSteps; ++i) step(i, full);
  }

  double negatives() const noexcept { return negatives_; }

 private:
  static constexpr unsigned kSteps = 256;

  struct Lost {
    double bits = 0, keys = 0;  // per row
  };

  void step(unsigned i, double full) noexcept {
    const double before = time_[i - 1], now = time_[i];
    cleared_[i] = cleared_[i - 1];
    if (load_ * stream_.distinct_in(now) <= full) return;
    const double rows = now - before,
                 fresh = stream_.distinct_in(now) - stream_.distinct_in(before);
    Lost lost = last_;
    // The first guess is that nothing has changed since the step before.
    for (int round = 0; round < 2; ++round) {
      const double bits = (last_.bits + lost.bits) / 2;
      cleared_[i] = cleared_[i - 1] + load_ * (fresh + rows * bits / (1 - setting_.ones / kBits));
      lost = lost_at(i);
    }
    negatives_ += rows * (last_.keys + lost.keys) / 2;
    last_ = lost;
  }

  Lost lost_at(unsigned i) const noexcept {
    Lost sum;
    unsigned from = i;
    for (unsigned j = 0; j < Lags::kCount && lags_.at[j] < time_[i]; ++j) {
      const double start = time_[i] - lags_.at[j];
      while (from > 0 && time_[from] > start) --from;
      if (from == i) continue;  // a lag that is lost in rounding
      const double width = time_[from + 1] - time_[from],
                   at = cleared_[from] +
                        (start - time_[from]) / width * (cleared_[from + 1] - cleared_[from]);
      const double since = cleared_[i] - at;
      if (!(since > 0)) continue;
      sum.bits += lags_.share[j] * mean_zeros(setting_, since);
      sum.keys += lags_.share[j] * mean_fnr(setting_, since);
    }
    return sum;
  }

  Setting setting_;
  const Stream& stream_;
  const Lags& lags_;
  double load_;
  double time_[kSteps + 1];
  double cleared_[kSteps + 1] = {};  // in new keys that clear as much
  Lost last_;
  double negatives_ = 0;
};

}  // namespace

Prediction predict(const Setting& setting, const Stream& of_line) noexcept {
  const double fpr = exact_store_model::mean_fpr(of_line.distinct(),
                                                 [&](double n) { return rate_after(setting, n); });
  if (!(of_line.repeats() > 0)) return {fpr, std::numeric_limits<double>::quiet_NaN()};
  // From 5 standard deviations below the mean to 6 above it: few keys are unevenly spread.
  constexpr int kClasses = 22;
  const double mean = of_line.distinct(), width = std::sqrt(mean) / 2;
  const Lags lags(of_line);
  double negatives = 0, rows = 0;
  for (int i = 0; i < kClasses; ++i) {
    const double keys = mean + (i + 0.5 - 10) * width;
    if (!(keys > 0)) continue;
    const double share =
        boost::math::gamma_p(std::max(keys - width / 2, 1e-3), mean, MathPolicy()) -
        boost::math::gamma_p(keys + width / 2, mean, MathPolicy());
    rows += share * keys / mean * of_line.repeats();
    if (keys <= filling(setting) || setting.ones >= kBits) continue;  // nothing is cleared
    negatives += share * keys / mean * Course(setting, of_line, lags, keys / mean).negatives();
  }
  return {fpr, std::clamp(negatives / rows, 0.0, 1.0)};
}

}  // namespace streamfilter::capped_model
