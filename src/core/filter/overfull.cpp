#include "core/filter/overfull.hpp"

#include <cmath>

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

// Upper bound for the rate of all probes of a key with this load together: the logarithm of a rate
// is concave in the load, so the geometric mean of their rates is at most the rate of their mean
// load.
double rate_at(const Parameters& p, std::uint64_t load) noexcept {
  const double k1 = probes(p);
  return std::pow(find_ops(p.kind)->rate_at(p, static_cast<double>(load) / k1), k1);
}

double rate_of(const Parameters& p, ConstSlice slice) noexcept {
  return find_ops(p.kind)->estimate(p, slice).fpr;
}

}  // namespace

OverfullLimit overfull_limit(const Parameters& p, double fpr) noexcept {
  const FilterOps* ops = find_ops(p.kind);
  OverfullLimit limit;
  if (!(fpr > 0) || ops->load == nullptr) return limit;
  limit.rate = kOverfullRate * fpr;
  std::uint64_t low = 0, high = p.slice_bytes * 8 * probes(p);
  if (rate_at(p, high) <= limit.rate) return limit;
  while (high - low > low / 4096 + 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (rate_at(p, middle) <= limit.rate ? low : high) = middle;
  }
  limit.load = low;
  return limit;
}

std::uint64_t load_of(const Header* header, std::uint64_t hash) noexcept {
  const Parameters& p = header->parameters;
  const auto load = find_ops(p.kind)->load;
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < probes(p); ++i)
    sum += load(p, slice_at(header, probe_of(p, hash, i).slice));
  return sum;
}

bool exceeds_rate(const Header* header, std::uint64_t hash, const OverfullLimit& limit) noexcept {
  const Parameters& p = header->parameters;
  double rate = 1;
  for (unsigned i = 0; i < probes(p); ++i)
    rate *= rate_of(p, slice_at(header, probe_of(p, hash, i).slice));
  return rate > limit.rate;
}

bool is_overfull(const Header* header, const OverfullLimit& limit) noexcept {
  if (limit.is_none()) return false;
  const Parameters& p = header->parameters;
  const std::uint32_t group = slices_of_group(p);
  for (std::uint32_t first = 0; first < p.slices; first += group) {
    double probe_rate = 0;
    for (std::uint32_t i = first; i < first + group; ++i)
      probe_rate += rate_of(p, slice_at(header, i)) / group;
    if (std::pow(probe_rate, probes(p)) > limit.rate) return true;
  }
  return false;
}

}  // namespace streamfilter
