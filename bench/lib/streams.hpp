// Streams of keys as the papers generate them. Each class has next(), which gives the next key as a
// number. Equal parameters and seeds give equal streams: no distribution of the standard library is
// used, only std::mt19937_64, whose output the standard fixes.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace bench {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Uniform over 0..n-1.
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(engine_()) * n) >> 64);
  }
  // Uniform over 0..1, 1 excluded.
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }
  double exponential(double mean) { return -mean * std::log1p(-unit()); }

 private:
  std::mt19937_64 engine_;
};

// The exact truth about a stream of keys 0..universe-1.
class SeenKeys {
 public:
  explicit SeenKeys(std::uint64_t universe) : seen_(universe) {}

  // True if this key was seen before. Marks it as seen.
  bool is_repeat(std::uint64_t key) {
    const bool before = seen_[key];
    seen_[key] = true;
    return before;
  }

 private:
  std::vector<bool> seen_;
};

// Independent uniform draws from 0..universe-1.
class Uniform {
 public:
  Uniform(std::uint64_t universe, std::uint64_t seed) : universe_(universe), random_(seed) {}
  std::uint64_t next() { return random_.below(universe_); }

 private:
  std::uint64_t universe_;
  Random random_;
};

// Each of 0..distinct-1 once, and rows - distinct uniform draws from these, all in random order.
// The "uniformly and randomly generated datasets" of tables 1-9 of Bera et al. 2012 and table 2 of
// Dutta et al. 2013 turn out to be such streams. Gives `rows` keys.
class ShuffledList {
 public:
  ShuffledList(std::uint64_t rows, std::uint64_t distinct, std::uint64_t seed)
      : rows_(rows), list_(distinct), random_(seed) {
    for (std::uint64_t i = 0; i < distinct; ++i) list_[i] = i;
  }

  std::uint64_t next() {
    const std::uint64_t left = list_.size() - taken_;
    if (random_.below(rows_--) >= left) return random_.below(list_.size());
    // The next of a random permutation (Fisher and Yates), drawn when needed.
    std::swap(list_[taken_], list_[taken_ + random_.below(left)]);
    return list_[taken_++];
  }

 private:
  std::uint64_t rows_;
  std::vector<std::uint64_t> list_;
  std::uint64_t taken_ = 0;
  Random random_;
};

// Independent draws of 0..universe-1 where key i has a probability proportional to
// 1/(i+1)^exponent, exponent > 0: rejection-inversion (Hörmann, Derflinger 1996), without tables.
class Zipf {
 public:
  Zipf(std::uint64_t universe, double exponent, std::uint64_t seed)
      : exponent_(exponent),
        low_(integral(1.5) - 1),
        high_(integral(static_cast<double>(universe) + 0.5)),
        shortcut_(2 - inverse(integral(2.5) - weight(2))),
        universe_(static_cast<double>(universe)),
        random_(seed) {}

  std::uint64_t next() {
    for (;;) {
      const double u = high_ + random_.unit() * (low_ - high_);
      const double x = inverse(u);
      const double rank = std::fmin(std::fmax(std::floor(x + 0.5), 1), universe_);
      if (rank - x <= shortcut_ || u >= integral(rank + 0.5) - weight(rank))
        return static_cast<std::uint64_t>(rank) - 1;
    }
  }

 private:
  double weight(double x) const { return std::exp(-exponent_ * std::log(x)); }
  // The integral of the weight, and its inverse.
  double integral(double x) const {
    const double log = std::log(x), power = (1 - exponent_) * log;
    return std::fabs(power) > 1e-8 ? std::expm1(power) / (1 - exponent_) : log * (1 + power / 2);
  }
  double inverse(double y) const {
    const double t = std::fmax(y * (1 - exponent_), -1);
    return std::exp(std::fabs(t) > 1e-8 ? std::log1p(t) / (1 - exponent_) : y * (1 - t / 2));
  }

  double exponent_, low_, high_, shortcut_, universe_;
  Random random_;
};

// The synthetic data of Deng, Rafiei 2006 §5.1. Some positions hold frequent keys, drawn from an
// exponential distribution of mean u: key i = 0, 1, … with probability e^(-i/u) - e^(-(i+1)/u). All
// other positions hold keys that come once.
class FrequentKeys {
 public:
  FrequentKeys(double u, std::uint64_t seed) : random_(seed), u_(u) {}

 protected:
  std::uint64_t frequent() { return static_cast<std::uint64_t>(random_.exponential(u_)); }
  std::uint64_t once() { return kOnce + count_++; }

  Random random_;

 private:
  static constexpr std::uint64_t kOnce = std::uint64_t{1} << 63;
  double u_;
  std::uint64_t count_ = 0;
};

// Frequent keys as a Poisson process: gaps between them are exponential (geometric, because
// positions are whole), and their share is lambda.
class Poisson : FrequentKeys {
 public:
  Poisson(double lambda, double u, std::uint64_t seed) : FrequentKeys(u, seed), lambda_(lambda) {}
  std::uint64_t next() { return random_.chance(lambda_) ? frequent() : once(); }

 private:
  double lambda_;
};

// Frequent keys in bursts, by the b-model: of a share v of `rows`, b fall into the first half of
// them and 1-b into the second, and so on for both halves, down to 2^level parts.
class BModel : FrequentKeys {
 public:
  BModel(std::uint64_t rows, double b, unsigned level, double v, double u, std::uint64_t seed)
      : FrequentKeys(u, seed), rows_(rows), b_(b), v_(v), level_(level) {}

  // No part may need more frequent keys than it has rows: level <= ln v / ln(1/(2b)).
  bool is_possible() const { return share(0) <= 1; }

  std::uint64_t next() {
    const std::uint64_t part =
        static_cast<std::uint64_t>((static_cast<unsigned __int128>(row_++) << level_) / rows_);
    return random_.chance(share(part)) ? frequent() : once();
  }

 private:
  double share(std::uint64_t part) const {
    double share = v_;
    for (unsigned i = 0; i < level_; ++i) share *= 2 * (part >> i & 1 ? 1 - b_ : b_);
    return share;
  }

  std::uint64_t rows_, row_ = 0;
  double b_, v_;
  unsigned level_;
};

// A share of the rows repeats the key of an earlier row at an exponential distance; the others are
// new. (A key may come again in between, so its last sight may be nearer.)
class ExponentialGaps {
 public:
  ExponentialGaps(double repeats, double mean_gap, std::uint64_t seed)
      : repeats_(repeats), mean_gap_(mean_gap), random_(seed) {}

  std::uint64_t next() {
    const double gap = 1 + std::floor(random_.exponential(mean_gap_));
    const bool repeat = random_.chance(repeats_) && gap <= static_cast<double>(keys_.size());
    keys_.push_back(repeat ? keys_[keys_.size() - static_cast<std::size_t>(gap)] : new_++);
    return keys_.back();
  }

 private:
  double repeats_, mean_gap_;
  Random random_;
  std::vector<std::uint64_t> keys_;
  std::uint64_t new_ = 0;
};

// Times of arrival in microseconds: a Poisson process of `per_second` events.
class ArrivalTimes {
 public:
  ArrivalTimes(double per_second, std::uint64_t seed)
      : mean_gap_(1e6 / per_second), random_(seed) {}
  std::int64_t next() {
    now_ += random_.exponential(mean_gap_);
    return static_cast<std::int64_t>(now_);
  }

 private:
  double mean_gap_, now_ = 0;
  Random random_;
};

}  // namespace bench
