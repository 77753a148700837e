#include "streamfilter/core/queue_model.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>

#include "streamfilter/core/boost_policy.hpp"
#include "streamfilter/core/line_ages.hpp"

#include "streamfilter/core/no_postgres.hpp"

namespace streamfilter::queue_model {

namespace {

// How many places of fingerprints of so many bits a line has.
unsigned places(unsigned bits, bool is_aged) noexcept {
  return is_aged ? (kLineBits - kStampBits) / (bits + kAgeBits) : kLineBits / bits;
}

}  // namespace

unsigned longest(unsigned bits, bool is_aged) noexcept {
  const unsigned different = bits < 10 ? (1u << bits) - 1 : kLongestQueue;
  return std::min({kLongestQueue, places(bits, is_aged), different});
}

unsigned Shape::buckets() const noexcept { return places(bits, is_aged) / length; }

bool Shape::is_possible() const noexcept { return length <= longest(bits, is_aged); }

// The sum of Poisson probabilities from `length` on is an incomplete gamma function.
double fnr(double others, double length, double buckets) noexcept {
  if (!(others > 0)) return 0;
  return boost::math::gamma_p(length, others / buckets, MathPolicy());
}

bool best_shape(double fpr, unsigned bits, unsigned length, Shape& best, bool is_aged) noexcept {
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
      consider({width, length, is_aged});
      continue;
    }
    // For every number of buckets to a line, the longest that keep fpr.
    const double most = fpr * (std::ldexp(1, static_cast<int>(width)) - 1);
    const unsigned limit =
        most < longest(width, is_aged) ? static_cast<unsigned>(most) : longest(width, is_aged);
    unsigned last = 0;
    for (unsigned buckets = 1; buckets <= places(width, is_aged); ++buckets) {
      const unsigned fits = std::min(limit, places(width, is_aged) / buckets);
      if (fits > 0 && fits != last) consider({width, fits, is_aged});
      last = fits;
    }
  }
  return reached > 0;
}

}  // namespace streamfilter::queue_model
