// What filters with small counting cells have in common: widths, capacities and merging.
#pragma once

#include <algorithm>
#include <cmath>

#include "streamfilter/core/block.hpp"
#include "streamfilter/core/packed_cells.hpp"

namespace streamfilter {

// The bits of a cell that counts to `max` (at most 15).
inline unsigned cell_bits_for(std::uint64_t max) noexcept {
  return max <= 1 ? 1 : max <= 3 ? 2 : max <= 7 ? 3 : 4;
}

inline std::uint64_t cells_in(std::uint64_t bytes, unsigned cell_bits) noexcept {
  return with_cell_width(cell_bits,
                         [=](auto width) { return PackedCells<width.value>::capacity(bytes); });
}

// Could these bytes be m cells of up to max? All other bits must be zero. Counts the cells that are
// not zero.
inline bool check_cells(ConstSlice slice, unsigned cell_bits, std::uint64_t m, std::uint64_t max,
                        std::uint64_t& non_zero) noexcept {
  for (std::uint64_t bit = m * cell_bits; bit < slice.bytes * 8; ++bit)
    if (slice.body[bit / 8] >> bit % 8 & 1) return false;
  return with_cell_width(cell_bits, [&](auto width) {
    const PackedCells<width.value, const unsigned char> cells(slice.body);
    non_zero = 0;
    for (std::uint64_t i = 0; i < m; ++i) {
      const unsigned value = cells.get(i);
      if (value > max) return false;
      non_zero += value != 0;
    }
    return true;
  });
}

// Every cell takes the larger value of the two; returns how many are not zero then.
inline std::uint64_t take_larger_cells(Slice into, ConstSlice from, unsigned cell_bits,
                                       std::uint64_t m) noexcept {
  return with_cell_width(cell_bits, [&](auto width) {
    const PackedCells<width.value> a(into.body);
    const PackedCells<width.value, const unsigned char> b(from.body);
    std::uint64_t non_zero = 0;
    for (std::uint64_t i = 0; i < m; ++i) {
      const unsigned value = std::max(a.get(i), b.get(i));
      a.set(i, value);
      non_zero += value != 0;
    }
    return non_zero;
  });
}

// Linear counting of the keys whose k cells of m are still set.
inline double remembered_keys(std::uint64_t non_zero, double m, double k) noexcept {
  return -m / k * std::log1p(-std::min(static_cast<double>(non_zero) / m, 1 - 1 / m));
}

// `novel` of a merged filter. The sum would count keys that both have seen twice; it is scaled by
// what the cells, before and after, say of the overlap.
inline std::uint64_t merged_novel(std::uint64_t novel_a, std::uint64_t novel_b,
                                  std::uint64_t non_zero_a, std::uint64_t non_zero_b,
                                  std::uint64_t non_zero_both, double m, double k) noexcept {
  const double parts = remembered_keys(non_zero_a, m, k) + remembered_keys(non_zero_b, m, k);
  const double both = remembered_keys(non_zero_both, m, k);
  const double a = static_cast<double>(novel_a), b = static_cast<double>(novel_b);
  const double scaled = parts > 0 ? (a + b) * both / parts : a + b;
  return static_cast<std::uint64_t>(std::clamp(std::round(scaled), std::max(a, b), a + b));
}

}  // namespace streamfilter
