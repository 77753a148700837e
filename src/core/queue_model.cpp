#include "streamfilter/core/queue_model.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>

#include "streamfilter/core/boost_policy.hpp"
#include "streamfilter/core/cache_line.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter::queue_model {

unsigned longest(unsigned bits) noexcept {
  const unsigned different = bits < 10 ? (1u << bits) - 1 : kLongestQueue;
  return std::min({kLongestQueue, kLineBits / bits, different});
}

bool Shape::is_possible() const noexcept { return length <= longest(bits); }

// The sum of Poisson probabilities from `length` on is an incomplete gamma function.
double fnr(double others, double length, double buckets) noexcept {
  if (!(others > 0)) return 0;
  return boost::math::gamma_p(length, others / buckets, MathPolicy());
}

bool best_shape(double fpr, unsigned bits, unsigned length, Shape& best) noexcept {
  double reached = 0;
  double window[kLongestQueue + 1] = {};  // of one bucket, by its length; 0: not known yet
  const auto consider = [&](const Shape& shape) {
    if (!shape.is_possible() || shape.fpr() > fpr) return;
    double& one = window[shape.length];
    if (one == 0)
      one = boost::math::gamma_p_inv(static_cast<double>(shape.length), 0.01, MathPolicy());
    if (one * shape.buckets() <= reached) return;
    reached = one * shape.buckets();
    best = shape;
  };
  for (unsigned width = kFewestBits; width <= kWidestFingerprint; ++width) {
    if (bits != 0 && bits != width) continue;
    if (length != 0) {
      consider({width, length});
      continue;
    }
    // For every number of buckets to a line, the longest that keep fpr.
    const double most = fpr * (std::ldexp(1, static_cast<int>(width)) - 1);
    const unsigned limit = most < longest(width) ? static_cast<unsigned>(most) : longest(width);
    unsigned last = 0;
    for (unsigned buckets = 1; buckets <= kLineBits / width; ++buckets) {
      const unsigned fits = std::min(limit, kLineBits / (width * buckets));
      if (fits > 0 && fits != last) consider({width, fits});
      last = fits;
    }
  }
  return reached > 0;
}

}  // namespace streamfilter::queue_model
