#include "core/model/importance_model.hpp"

#include "core/base/math_policy.hpp"
#include "core/model/stable_model.hpp"

namespace streamfilter::importance_model {
namespace {

constexpr double kMaxLooksReal = to_real(kMaxLooks);

// p'/k' of a cell of value j: it is decremented in `looks` of m cells with probability 1/j or 1, if
// it is not set by the same element.
double loss(const Setting& s, double looks, unsigned j) noexcept {
  const double taken = s.deletion == Deletion::value ? looks / j : looks;
  return taken / s.k * (1 - s.k / s.m);
}

// A cell leaves {values < j} for {values >= j} when it is set to at least j, and returns when it is
// j and decremented. With U_j the probability of {values < j}: k P(level >= j) U_j = p'_j V_j and
// V_j = U_(j+1) - U_j, from U_(M+1) = 1 downwards.
void limits(const Levels& levels, const Setting& s, double looks, double* v) noexcept {
  double at_least = 0, below = 1;
  for (unsigned j = levels.max; j > 0; --j) {
    at_least += levels.share[j];
    const double next = below / (1 + at_least / loss(s, looks, j));
    v[j] = below - next;
    below = next;
  }
  v[0] = below;
}

// The mean of 1/value over all cells, where it is 0 for zero: the chance that a look decrements.
double hits(const Levels& levels, const double* v) noexcept {
  double sum = 0;
  for (unsigned j = 1; j <= levels.max; ++j) sum += v[j] / j;
  return sum;
}

}  // namespace

Levels two_classes(unsigned max) noexcept {
  Levels levels{max, {}};
  levels.share[max / 2] = levels.share[max] = 0.5;
  return levels;
}

Levels uniform(unsigned max) noexcept {
  Levels levels{max, {}};
  for (unsigned j = 1; j <= max; ++j) levels.share[j] = 1.0 / max;
  return levels;
}

Levels most_important(unsigned max) noexcept {
  Levels levels{max, {}};
  levels.share[max] = 1;
  return levels;
}

// The decrements per element grow with the looks and are to be P.
double looks(const Levels& levels, const Setting& s) noexcept {
  if (s.deletion == Deletion::random) return s.p;
  double v[kMaxLevels + 1];
  double low = s.p, high = std::min(s.p * kMaxLooksReal, s.m);
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    limits(levels, s, middle, v);
    (middle * hits(levels, v) < s.p ? low : high) = middle;
  }
  return high;
}

void stationary(const Levels& levels, const Setting& s, double* v) noexcept {
  limits(levels, s, looks(levels, s), v);
}

// Less important elements set cells to less, so the zeros are fewest when all are most important,
// and on streams of distinct keys (Deng, Rafiei 2006, Theorem 3). With Deletion::value, a look
// decrements with probability at most the share F of cells that are not zero, so there are at least
// P/F looks. What F implies for itself in this way is concave in it: below the largest F that
// agrees with itself it is more than F, above it is less.
double fpr_bound(unsigned max, const Setting& s) noexcept {
  if (s.deletion == Deletion::random) return stable_model::fpr_bound(max, s.k, s.p, s.m);
  const Levels levels = most_important(max);
  double low = 0, high = 1, v[kMaxLevels + 1];
  for (int round = 0; round < 60; ++round) {
    const double filled = (low + high) / 2;
    limits(levels, s, std::min({s.p / filled, s.p * kMaxLooksReal, s.m}), v);
    (1 - v[0] > filled ? low : high) = filled;
  }
  return std::pow(high, s.k);
}

std::uint64_t decrements(double fpr, unsigned max, Setting s) noexcept {
  if (s.k >= s.m) return 0;
  if (s.deletion == Deletion::random) return stable_model::whole_decrements(fpr, max, s.k, s.m);
  const auto keeps = [&](std::uint64_t p) {
    s.p = to_real(p);
    return fpr_bound(max, s) <= fpr;
  };
  std::uint64_t low = 0, high = static_cast<std::uint64_t>(s.m);
  if (!keeps(high)) return 0;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (keeps(middle) ? high : low) = middle;
  }
  return high;
}

namespace {

// Powers of the transition matrix T of one cell, as T^n - 1: the entries of T - 1 may be smaller
// than the rounding errors of 1.
class Powers {
 public:
  Powers(const Levels& levels, const Setting& s) noexcept : size_(levels.max + 1) {
    const double looked = looks(levels, s), set = s.k / s.m;
    for (unsigned from = 0; from < size_; ++from) {
      double taken = from == 0 ? 0 : std::min(looked / s.m, 1.0);
      if (from > 0 && s.deletion == Deletion::value) taken /= from;
      const double chances[] = {1 - taken, taken};
      for (unsigned less = 0; less <= (from > 0); ++less) {
        const unsigned then = from - less;
        step_[from][then] += chances[less] * (1 - set);
        for (unsigned level = 1; level < size_; ++level)
          step_[from][std::max(then, level)] += chances[less] * set * levels.share[level];
      }
      // The diagonal, of T - 1, is what the others take.
      step_[from][from] = 0;
      double others = 0;
      for (unsigned to = 0; to < size_; ++to) others += step_[from][to];
      step_[from][from] = -others;
    }
  }

  // The probability that a cell that had value `from` is zero after n elements.
  void advance(double n) noexcept {
    for (std::uint64_t rest = saturate<std::uint64_t>(n); rest > 0; rest >>= 1) {
      if (rest & 1) multiply(power_, step_);
      multiply(step_, step_);
    }
  }
  double zero(unsigned from) const noexcept { return power_[from][0] + (from == 0); }

 private:
  using Matrix = double[kMaxLevels + 1][kMaxLevels + 1];

  // (1 + a)(1 + b) - 1 = a + b + ab
  void multiply(Matrix& a, const Matrix& b) const noexcept {
    Matrix sum;
    for (unsigned i = 0; i < size_; ++i)
      for (unsigned j = 0; j < size_; ++j) {
        sum[i][j] = a[i][j] + b[i][j];
        for (unsigned l = 0; l < size_; ++l) sum[i][j] += a[i][l] * b[l][j];
      }
    for (unsigned i = 0; i < size_; ++i) std::copy(sum[i], sum[i] + size_, a[i]);
  }

  unsigned size_;
  Matrix step_{};
  Matrix power_{};
};

// A cell is left at the element's level, or at a higher one that it had from others.
double fnr_after(unsigned level, const Levels& levels, const double* v, const Powers& powers,
                 double k) noexcept {
  double zero = 0;
  for (unsigned j = 0; j <= levels.max; ++j) zero += v[j] * powers.zero(std::max(j, level));
  return -std::expm1(k * std::log1p(-std::clamp(zero, 0.0, 1.0)));
}

}  // namespace

double fnr(unsigned level, double gap, const Levels& levels, const Setting& s) noexcept {
  double v[kMaxLevels + 1];
  stationary(levels, s, v);
  Powers powers(levels, s);
  powers.advance(gap);
  return fnr_after(level, levels, v, powers, s.k);
}

double mean_fnr(double gap, const Levels& levels, const Setting& s) noexcept {
  double v[kMaxLevels + 1], sum = 0;
  stationary(levels, s, v);
  Powers powers(levels, s);
  powers.advance(gap);
  for (unsigned level = 1; level <= levels.max; ++level)
    if (levels.share[level] > 0)
      sum += levels.share[level] * fnr_after(level, levels, v, powers, s.k);
  return sum;
}

}  // namespace streamfilter::importance_model
