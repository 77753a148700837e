
#include "core/model/slicing_model.hpp"
#include "core/format/layout.hpp"

namespace streamfilter::slicing_model {
// The mean of value(l) over l that is Poisson distributed; beyond the limit, normally.
template <typename Value>
static double over_poisson(double mean, Value value) noexcept {
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

SlicingShape shape_of(const Parameters& parameters, double k, double m) noexcept {
  const double k2 = to_real(bits_per_probe(parameters, static_cast<std::uint64_t>(k)));
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
