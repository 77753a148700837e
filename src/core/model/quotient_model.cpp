#include "core/model/quotient_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace streamfilter::quotient_model {
namespace {

struct Binomials {
  std::uint32_t of[kMaxRemainderBits + 1][kMaxRemainderBits + 1];
};

constexpr Binomials pascal() noexcept {
  Binomials result{};
  for (unsigned n = 0; n <= kMaxRemainderBits; ++n) {
    result.of[n][0] = 1;
    for (unsigned i = 1; i <= n; ++i)
      result.of[n][i] = result.of[n - 1][i - 1] + (i < n ? result.of[n - 1][i] : 0);
  }
  return result;
}

constexpr Binomials kBinomials = pascal();

// Signatures with the same number of ones have the same probability.
struct Group {
  double probability;  // of one signature
  double size;         // how many signatures
};

Group group(unsigned r_prime, unsigned u, unsigned ones) noexcept {
  const int bits = static_cast<int>(r_prime + u);
  return {std::ldexp(binomial(u, ones), -bits), std::ldexp(1, static_cast<int>(r_prime))};
}

double signatures(unsigned r_prime, unsigned u) noexcept {
  return std::ldexp(u + 1, static_cast<int>(r_prime));
}

// The elementary symmetric polynomials e_0 … e_degree of the probabilities of all signatures, one
// of those with `left_out` ones aside.
class Polynomials {
 public:
  static constexpr unsigned kNone = ~0u;

  Polynomials(unsigned r_prime, unsigned u, unsigned degree, unsigned left_out = kNone) noexcept {
    e_[0] = 1;
    for (unsigned i = 1; i <= degree; ++i) e_[i] = 0;
    for (unsigned ones = 0; ones <= u; ++ones) {
      Group g = group(r_prime, u, ones);
      if (ones == left_out) --g.size;
      multiply(g, degree);
    }
  }

  double operator[](unsigned i) const noexcept { return e_[i]; }

 private:
  // Times (1 + probability t)^size, up to t^degree.
  void multiply(const Group& g, unsigned degree) noexcept {
    double factor[kMaxBuckets + 2];
    factor[0] = 1;
    for (unsigned j = 1; j <= degree; ++j)
      factor[j] = factor[j - 1] * std::max(g.size - (j - 1), 0.0) / j * g.probability;
    for (unsigned i = degree; i > 0; --i) {
      double sum = 0;
      for (unsigned j = 0; j <= i; ++j) sum += factor[j] * e_[i - j];
      e_[i] = sum;
    }
  }

  double e_[kMaxBuckets + 2];
};

}  // namespace

std::uint32_t binomial(unsigned n, unsigned i) noexcept { return kBinomials.of[n][i]; }

double collision(unsigned r_prime, unsigned u) noexcept {
  double sum = 0;
  for (unsigned ones = 0; ones <= u; ++ones) {
    const Group g = group(r_prime, u, ones);
    sum += g.size * g.probability * g.probability;
  }
  return sum;
}

double mean_fill(double keys, double rows, unsigned k) noexcept {
  if (rows <= 1) return std::min(keys, static_cast<double>(k));
  // E[min(L, k)] = k - sum over j < k of (k - j) P(L = j), L binomial.
  double missing = 0, probability = std::exp(keys * std::log1p(-1 / rows));
  for (unsigned j = 0; j < k && j <= keys; ++j) {
    missing += (k - j) * probability;
    probability *= (keys - j) / (j + 1) / (rows - 1);
  }
  return k - missing;
}

double covered(unsigned r_prime, unsigned u, double keys, double rows) noexcept {
  double sum = 0;
  for (unsigned ones = 0; ones <= u; ++ones) {
    const Group g = group(r_prime, u, ones);
    sum -= g.size * g.probability * std::expm1(keys * std::log1p(-g.probability / rows));
  }
  return sum;
}

double fpr_bound(unsigned r_prime, unsigned u, unsigned k, double keys, double rows) noexcept {
  const double per_bucket = collision(r_prime, u);
  if (keys <= 0) return std::min(1.0, k * per_bucket);
  return std::min(mean_fill(keys, rows, k) * per_bucket, covered(r_prime, u, keys, rows));
}

double fnr(double gap, unsigned r_prime, unsigned u, unsigned k, double rows) noexcept {
  if (k >= signatures(r_prime, u)) return 0;
  const double all = Polynomials(r_prime, u, k)[k];
  double sum = 0;
  for (unsigned ones = 0; ones <= u; ++ones) {
    const Group g = group(r_prime, u, ones);
    const double others = Polynomials(r_prime, u, k - 1, ones)[k - 1];
    const double present = g.probability * others / all;
    const double moves = std::min(1.0, all / others / rows);  // leaving plus coming back
    sum -= g.size * g.probability * (1 - present) * std::expm1(gap * std::log1p(-moves));
  }
  return std::clamp(sum, 0.0, 1.0);
}

double lifetime(double rows, double buckets) noexcept { return rows * std::log1p(buckets / rows); }

double dynamic_fpr_bound(unsigned r_prime, unsigned u, double keys, double rows,
                         double buckets) noexcept {
  const double used = keys > 0 ? std::min(keys, buckets) : buckets;
  const double bound = std::min(1.0, used / rows * collision(r_prime, u));
  return keys > 0 ? std::min(bound, covered(r_prime, u, keys, rows)) : bound;
}

double dynamic_fnr(double gap, unsigned r_prime, unsigned u, double rows, double buckets) noexcept {
  if (buckets >= signatures(r_prime, u) * rows) return 0;
  const double fpr = dynamic_fpr_bound(r_prime, u, 0, rows, buckets);
  const double life = lifetime(rows, buckets);
  if (gap <= life) return 0;
  // The probability that no spacing of a Poisson process of rate 1/rows in 0..gap exceeds `life`:
  // sum over j of (-1)^j e^(-j life/rows) (x^j / j! + x^(j-1) / (j-1)!), x = (gap - j life) / rows.
  const double shrink = life / rows;
  if (gap / rows * std::exp(-shrink) > 15) return 1 - fpr;  // less than e^-15 are left
  double kept = 1;
  for (int j = 1; j * life < gap; ++j) {
    const double x = gap / rows - j * shrink;
    const double log_term = (j - 1) * std::log(x) - std::lgamma(j) - j * shrink;
    const double term = std::exp(log_term) * (x / j + 1);
    kept += j % 2 == 1 ? -term : term;
    if (term < 1e-18 && j > x) break;
  }
  return std::clamp(1 - kept, 0.0, 1.0) * (1 - fpr);
}

double distinct(unsigned r_prime, unsigned u, double used, double rows) noexcept {
  if (used >= signatures(r_prime, u) * rows) return std::numeric_limits<double>::infinity();
  // rows sum over s of (1 - e^(-n P_s / rows)) is concave in n: Newton's steps from below converge.
  double n = used;
  for (int round = 0; round < 100; ++round) {
    double excess = -used, slope = 0;
    for (unsigned ones = 0; ones <= u; ++ones) {
      const Group g = group(r_prime, u, ones);
      const double part = std::expm1(-n * g.probability / rows);
      excess -= rows * g.size * part;
      slope += g.size * g.probability * (part + 1);
    }
    const double step = -excess / slope;
    n += step;
    if (!(step > n * 1e-12)) break;
  }
  return n;
}

}  // namespace streamfilter::quotient_model
