// Shared by filters with small counting cells: widths, capacities and merging.
#pragma once

#include "core/bits/packed_words.hpp"
#include "core/format/layout.hpp"
#include "core/format/spread.hpp"

namespace streamfilter {

// Bits of a cell that counts to `max` (at most 15).
inline unsigned cell_bits_for(std::uint64_t max) noexcept {
  return max <= 1 ? 1 : max <= 3 ? 2 : max <= 7 ? 3 : 4;
}

inline std::uint64_t cells_in(std::uint64_t bytes, unsigned cell_bits) noexcept {
  return with_cell_width(cell_bits,
                         [=](auto width) { return PackedCells<width.value>::capacity(bytes); });
}

constexpr unsigned kMaxCellsOfKey = 32;

// Are all k cells of a key set, of the m of its region?
template <unsigned bits>
bool test_cells(const Parameters& p, ConstSlice slice, std::uint64_t hash, std::uint64_t k,
                std::uint64_t m) noexcept {
  const PackedCells<bits, const unsigned char> cells(slice.body() +
                                                     region_start(p, slice.bytes, hash));
  std::uint64_t at[kMaxCellsOfKey];
  find_cells(p, hash, static_cast<unsigned>(k), m, at);
  for (unsigned i = 0; i < k; ++i)
    if (cells.get(at[i]) == 0) return false;
  return true;
}

// Decrements cells, adjacent from one random start (Deng, Rafiei 2006 §5.2); the paper draws each
// cell, with the same error rates. Returns how many became zero.
template <unsigned bits>
std::uint64_t decrement_at_random(const PackedCells<bits>& cells, std::uint64_t m,
                                  std::uint64_t decrements, std::uint64_t& random) noexcept {
  const std::uint64_t start = random_below(random, m);
  const std::uint64_t before_end = std::min(decrements, m - start);
  std::uint64_t emptied = cells.decrement(start, before_end);
  if (before_end < decrements) emptied += cells.decrement(0, decrements - before_end);
  return emptied;
}

// Could these bytes be m cells of up to max? All other bits must be zero. Counts the non-zero
// cells.
inline bool check_cells(const unsigned char* body, std::uint64_t bytes, unsigned cell_bits,
                        std::uint64_t m, std::uint64_t max, std::uint64_t& non_zero) noexcept {
  for (std::uint64_t bit = m * cell_bits; bit < bytes * 8; ++bit)
    if (body[bit / 8] >> bit % 8 & 1) return false;
  return with_cell_width(cell_bits, [&](auto width) {
    const PackedCells<width.value, const unsigned char> cells(body);
    non_zero = 0;
    for (std::uint64_t i = 0; i < m; ++i) {
      const unsigned value = cells.get(i);
      if (value > max) return false;
      non_zero += value != 0;
    }
    return true;
  });
}

// The same for a slice of regions of `region_bytes` with m cells each.
inline bool check_regions(ConstSlice slice, std::uint64_t region_bytes, unsigned cell_bits,
                          std::uint64_t m, std::uint64_t max, std::uint64_t& non_zero) noexcept {
  non_zero = 0;
  for (std::uint64_t start = 0; start + region_bytes <= slice.bytes; start += region_bytes) {
    std::uint64_t counted;
    if (!check_cells(slice.body() + start, region_bytes, cell_bits, m, max, counted)) return false;
    non_zero += counted;
  }
  return true;
}

// Converts a layer of n cells, or lines, to another size (spread.hpp). Returns the number of
// non-zero cells.
inline std::uint64_t spread_cells(const unsigned char* from, std::uint64_t n, unsigned char* into,
                                  std::uint64_t m, unsigned cell_bits,
                                  std::uint64_t layer) noexcept {
  return with_cell_width(cell_bits, [&](auto width) {
    const PackedCells<width.value> cells(into);
    const PackedCells<width.value, const unsigned char> old(from);
    std::uint64_t non_zero = 0;
    for_each_place(n, m, layer, [&](std::uint64_t to, std::uint64_t at) {
      const unsigned value = old.get(at);
      if (value == 0) return;
      cells.set(to, value);
      ++non_zero;
    });
    return non_zero;
  });
}

inline void spread_lines(ConstSlice from, Slice into, std::uint64_t layer) noexcept {
  constexpr std::uint64_t kLine = 64;
  for_each_place(from.bytes / kLine, into.bytes / kLine, layer,
                 [&](std::uint64_t to, std::uint64_t at) {
                   std::memcpy(into.body() + to * kLine, from.body() + at * kLine, kLine);
                 });
}

// The same for the slices of a kind whose regions have m cells each.
inline std::uint64_t spread_regions(const Parameters& p, ConstSlice from, Slice into,
                                    std::uint64_t old_m, std::uint64_t m, unsigned cell_bits,
                                    std::uint64_t layer) noexcept {
  if (p.layout != Layout::blocked)
    return spread_cells(from.body(), old_m, into.body(), m, cell_bits, layer);
  spread_lines(from, into, layer);
  std::uint64_t non_zero = 0;
  check_regions(as_const(into), 64, cell_bits, m, 15, non_zero);
  return non_zero;
}

// Numbers of non-zero cells in two regions.
struct CellCounts {
  std::uint64_t before = 0;  // of the region that takes
  std::uint64_t raised = 0;  // raised by the other one
  std::uint64_t after = 0;   // after taking
};

// Every cell takes the larger value of the two.
inline CellCounts take_larger_cells(unsigned char* into, const unsigned char* from,
                                    unsigned cell_bits, std::uint64_t m) noexcept {
  return with_cell_width(cell_bits, [&](auto width) {
    const PackedCells<width.value> a(into);
    const PackedCells<width.value, const unsigned char> b(from);
    CellCounts counts;
    for (std::uint64_t i = 0; i < m; ++i) {
      const unsigned own = a.get(i), value = std::max(own, b.get(i));
      a.set(i, value);
      counts.before += own != 0;
      counts.raised += value != own;
      counts.after += value != 0;
    }
    return counts;
  });
}

// Merges two slices of regions of `region_bytes` with m cells each, k of them set for every key.
// `non_zero` counts the non-zero cells of `into` and is kept up to date; `from_non_zero` counts
// those of `from`. `thin_out(region)` removes what is too much from a merged region, and returns
// the number of cells that it has emptied.
template <typename ThinOut>
void merge_cells(Slice into, ConstSlice from, std::uint64_t region_bytes, unsigned cell_bits,
                 std::uint64_t m, std::uint64_t k, std::uint64_t& non_zero,
                 std::uint64_t from_non_zero, ThinOut thin_out) noexcept {
  const double cells = to_real(into.bytes / region_bytes * m);
  const double per_key = to_real(k);
  const double parts = counted_keys(to_real(non_zero), cells, per_key) +
                       counted_keys(to_real(from_non_zero), cells, per_key);
  std::uint64_t all = 0;
  non_zero = 0;
  for (std::uint64_t start = 0; start + region_bytes <= into.bytes; start += region_bytes) {
    unsigned char* region = into.body() + start;
    const CellCounts counts = take_larger_cells(region, from.body() + start, cell_bits, m);
    all += counts.after;
    non_zero += counts.after;
    if (counts.before > 0 && counts.raised > 0) non_zero -= thin_out(region);
  }
  into.state->inserted_new = merged_new_by_cells(into.state->inserted_new, from.state->inserted_new,
                                                 parts, counted_keys(to_real(all), cells, per_key));
}

}  // namespace streamfilter
