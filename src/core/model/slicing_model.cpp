#include "core/model/slicing_model.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>

#include "core/base/math_policy.hpp"
#include "core/format/slicing.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::slicing_model {
namespace {

// The mean of value(l) over l that is Poisson distributed; beyond the limit, normally.
template <typename Value>
double over_poisson(double mean, Value value) noexcept {
  constexpr double kLimit = 256, kDeviations = 8;
  if (!(mean > 0)) return value(0.0);
  if (mean > kLimit) {
    double sum = 0, weights = 0;
    for (double z = -kDeviations; z <= kDeviations; z += 0.5) {
      const double weight = std::exp(-z * z / 2);
      sum += weight * value(mean + z * std::sqrt(mean));
      weights += weight;
    }
    return sum / weights;
  }
  const double last = mean + 10 * std::sqrt(mean) + 20;
  double weight = std::exp(-mean), sum = weight * value(0.0);
  for (double l = 1; l <= last; ++l) {
    weight *= mean / l;
    sum += weight * value(l);
  }
  return sum;
}

double log_choose(double n, double k) noexcept {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

// P(Bin(n, p) >= least).
double at_least(double least, double n, double p) noexcept {
  if (least <= 0) return 1;
  if (least > n) return 0;
  using Binomial = boost::math::binomial_distribution<double, MathPolicy>;
  return boost::math::cdf(boost::math::complement(Binomial(n, p), least - 1));
}

// Where a probe of a key is lost with probability `lost`.
Errors errors_at(double lost, double probes, double rate, LostRule rule, unsigned least) noexcept {
  const double reached = 1 - lost;
  switch (rule) {
    case LostRule::duplicate: return {std::pow(lost + reached * rate, probes), 0};
    case LostRule::distinct:
      return {std::pow(reached * rate, probes), 1 - std::pow(reached, probes)};
    case LostRule::hybrid:
      return {at_least(least, probes, reached * rate), 1 - at_least(least, probes, reached)};
    case LostRule::votes: break;
  }
  // All reached probes say so, of `probes` that are each lost, or reached and set: a binomial count
  // of those reached among them.
  const double passes = lost + reached * rate;
  const double fpr =
      passes > 0 ? std::pow(passes, probes) * at_least(least, probes, reached * rate / passes) : 0;
  return {fpr, 1 - at_least(least, probes, reached)};
}

}  // namespace

SlicingShape shape_of(const Parameters& parameters, double k, double m) noexcept {
  const double k2 = static_cast<double>(bits_per_probe(parameters, static_cast<std::uint64_t>(k)));
  const double slices = slices_of_group(parameters);
  return {k / k2, k2, parameters.slices / slices, slices, m};
}

double group_rate(const SlicingShape& shape, double n, CellRate rate) noexcept {
  if (shape.k1 <= 1 || shape.k2 <= 1) return rate(shape.k1 * shape.k2, n, shape.slices * shape.m);
  const auto probe = [&](double load) { return rate(shape.k2, load, shape.m); };
  return std::pow(over_poisson(n * shape.k1 / shape.slices, probe), shape.k1);
}

double rate(const SlicingShape& shape, double n, CellRate rate) noexcept {
  if (shape.parts <= 1) return group_rate(shape, n, rate);
  return over_poisson(n / shape.parts, [&](double load) { return group_rate(shape, load, rate); });
}

Errors errors(const Failures& failures, LostRule rule, unsigned least) noexcept {
  const double slices = failures.slices, part = failures.part, lost = failures.lost;
  Errors sum{0, 0};
  const double first = std::max(0.0, lost - (slices - part)), last = std::min(part, lost);
  for (double of_group = first; of_group <= last; ++of_group) {
    const double weight =
        std::exp(log_choose(part, of_group) + log_choose(slices - part, lost - of_group) -
                 log_choose(slices, lost));
    const Errors one =
        errors_at(of_group / part, failures.probes, failures.probe_rate, rule, least);
    sum.fpr += weight * one.fpr;
    sum.fnr += weight * one.fnr;
  }
  return sum;
}

double slices_for_fpr(double probes, double fpr, double lost, double most) noexcept {
  const double probe_rate = std::pow(fpr, 1 / probes), allowed = std::pow(most, 1 / probes);
  if (lost <= 0) return 1;
  if (allowed <= probe_rate) return std::numeric_limits<double>::infinity();
  return std::max(lost, std::ceil(lost * (1 - probe_rate) / (allowed - probe_rate)));
}

double slices_for_fnr(double probes, double lost, double most) noexcept {
  if (lost <= 0) return 1;
  const double allowed = -std::expm1(std::log1p(-most) / probes);
  if (!(allowed > 0)) return std::numeric_limits<double>::infinity();
  return std::max(lost, std::ceil(lost / allowed));
}

}  // namespace streamfilter::slicing_model
