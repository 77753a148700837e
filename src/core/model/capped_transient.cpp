// The error rates of capped over a stream. A row counts by the zeros that it turns into ones, for
// as many ones are cleared for it: a new key's bits are zeros as often as any, those of a repeat
// are if they were cleared since its last sight. So the rate at which bits are cleared depends on
// the share of bits lost, an integral over the repeats' lags of what was cleared since; it is
// solved step by step.
#include <algorithm>
#include <boost/math/distributions/poisson.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

#include "core/base/math_policy.hpp"
#include "core/model/capped_model.hpp"
#include "core/model/exact_store_model.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::capped_model {
namespace {

constexpr double kBits = 512;  // of a line

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
