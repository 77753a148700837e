// Bounds for random counts. All seeds are fixed, so a check that passes once passes always; `odds`
// is the probability that a correct implementation fails it when a seed or a hash is changed.
#pragma once

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace unit {

constexpr double kOdds = 1e-6;

// A count of successes in n trials of probability p exceeds this with probability `odds`.
inline double most(double n, double p, double odds = kOdds) {
  return quantile(complement(boost::math::binomial(n, p), odds));
}

// … and falls below this with probability `odds`.
inline double least(double n, double p, double odds = kOdds) {
  return quantile(boost::math::binomial(n, p), odds);
}

// True if a count of n trials is that of this probability, but for chance.
inline bool fits(double count, double n, double p, double odds = kOdds) {
  return count <= most(n, p, odds) && count >= least(n, p, odds);
}

// True if two counts fit one common probability: the difference of their shares, as a normal
// deviate, is within the limit that it exceeds with probability `odds`.
inline bool same_rate(double count_a, double n_a, double count_b, double n_b, double odds = kOdds) {
  const double p = (count_a + count_b) / (n_a + n_b);
  const double deviation = std::sqrt(p * (1 - p) * (1 / n_a + 1 / n_b));
  const double limit = quantile(complement(boost::math::normal(), odds / 2));
  return std::fabs(count_a / n_a - count_b / n_b) <= limit * deviation;
}

// True if these counts are uniform over their bins. Chi-square, both tails: too even is suspicious,
// too.
inline bool is_uniform(const std::vector<std::uint64_t>& counts, double odds = kOdds) {
  double total = 0, sum = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  for (const std::uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  const boost::math::chi_squared law(static_cast<double>(counts.size()) - 1);
  return sum >= quantile(law, odds / 2) && sum <= quantile(complement(law, odds / 2));
}

}  // namespace unit
