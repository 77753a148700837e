// Numbers of keys, as the counters and bits of slices tell them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/saturate.hpp"

namespace streamfilter {

// Number of keys in the fullest of `slices` slices, out of `keys` distinct keys: three standard
// deviations above the mean. Exact for one slice.
inline double keys_of_fullest(double keys, double slices) noexcept {
  const double mean = keys / slices;
  return slices > 1 ? std::min(keys, mean + 3 * std::sqrt(mean)) : mean;
}

// Linear counting (Whang et al. 1990): number of keys with k bits each that set this share of m
// bits; infinity when all are set.
inline double keys_of_share(double share, double m, double k) noexcept {
  return -m / k * std::log1p(-share);
}

// The same for `ones` of m bits. A full array counts as one bit short of full.
inline double counted_keys(double ones, double m, double k) noexcept {
  return keys_of_share(std::min(ones / m, 1 - 1 / m), m, k);
}

// `inserted_new` of two merged filters. A plain sum would count keys of both twice, so this scales
// it by the overlap that the cells show: keys counted in the parts, summed, and in the union.
inline std::uint64_t merged_new_by_cells(std::uint64_t a, std::uint64_t b, double parts,
                                         double both) noexcept {
  const double sum = static_cast<double>(a) + static_cast<double>(b);
  const double scaled = parts > 0 ? sum * both / parts : sum;
  return std::clamp(saturate<std::uint64_t>(std::round(scaled)), std::max(a, b), a + b);
}

// The same where entries stand for keys: `added` of the `used` entries of `from` were new.
inline std::uint64_t merged_new_by_entries(std::uint64_t into, std::uint64_t from,
                                           std::uint64_t added, std::uint64_t used) noexcept {
  const double share = used > 0 ? static_cast<double>(added) / static_cast<double>(used) : 0;
  const std::uint64_t gained =
      saturate<std::uint64_t>(std::round(static_cast<double>(from) * share));
  return std::max(into + std::min(gained, from), from);
}

}  // namespace streamfilter
