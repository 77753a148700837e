// Converts a filter's state to another size. The place of a hash among n is what the hash is scaled
// to (scale, position: base/hash.hpp). The hashes at place j among m were at one of the places
// floor(jn/m) … ceil((j+1)n/m) - 1 among n. So if every new place takes over all of these, no key
// is missed.
//
// They are taken over in layers: the first of these places in layer 0, the next in layer 1 and so
// on. A layer is about as full as the old state; a kind merges layers by `merge`, which keeps its
// promise.
#pragma once

#include <algorithm>

#include "core/base/hash.hpp"
#include "core/base/prefetch_list.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

// Number of layers.
inline std::uint64_t layers_of(std::uint64_t n, std::uint64_t m) noexcept {
  if (m % n == 0) return 1;
  return n % m == 0 ? n / m : n / m + 2;
}

// Calls visit(new place, old place) for the places of a layer.
template <typename Visit>
void for_each_place(std::uint64_t n, std::uint64_t m, std::uint64_t layer, Visit visit) noexcept {
  const std::uint64_t whole = n / m, rest = n % m;
  std::uint64_t first = 0, over = 0;  // jn/m, and the remainder of the division
  for (std::uint64_t j = 0; j < m; ++j) {
    const bool carry = over + rest >= m;
    const std::uint64_t next = first + whole + carry, next_over = over + rest - (carry ? m : 0);
    const std::uint64_t last = next_over == 0 ? next - 1 : next;
    if (first + layer <= last) visit(j, first + layer);
    first = next;
    over = next_over;
  }
}

// The inverse: calls visit(new place) for the places of a layer that take over one old place.
template <typename Visit>
void for_each_new_place(std::uint64_t n, std::uint64_t m, std::uint64_t layer, std::uint64_t old,
                        Visit visit) noexcept {
  using Wide = unsigned __int128;
  if (old < layer) return;
  const auto first_from = [&](std::uint64_t place) {  // the first j with floor(jn/m) >= place
    return static_cast<std::uint64_t>((Wide{place} * m + n - 1) / n);
  };
  const std::uint64_t end = first_from(old - layer + 1);
  for (std::uint64_t j = first_from(old - layer); j < end && j < m; ++j)
    if (Wide{old} * m < Wide{j + 1} * n) visit(j);
}

// Where the cells of a key lie: anywhere in the body, or with layout blocked in one 64-byte line.

constexpr std::uint64_t kRegionLineBytes = 64;

// A key's cells are drawn from a region. These are the bytes of all regions together.
inline std::uint64_t region_bytes(const Parameters& p, std::uint64_t bytes) noexcept {
  return p.layout == Layout::blocked ? kRegionLineBytes : bytes;
}

// Start of a key's region.
inline std::uint64_t region_start(const Parameters& p, std::uint64_t bytes,
                                  std::uint64_t hash) noexcept {
  constexpr unsigned kRegionHash = 1000;  // a number that no cell of a key has
  if (p.layout != Layout::blocked) return 0;
  return position(hash, kRegionHash, bytes / kRegionLineBytes) * kRegionLineBytes;
}

// The k cells of a key among the m of its region: independent as in the papers, or, in a line, all
// different.
inline void find_cells(const Parameters& p, std::uint64_t hash, unsigned k, std::uint64_t m,
                       std::uint64_t* at) noexcept {
  for (unsigned i = 0; i < k; ++i) at[i] = position(hash, i, m);
  if (p.layout != Layout::blocked) return;
  for (unsigned i = 1; i < k; ++i)
    while (std::find(at, at + i, at[i]) != at + i) at[i] = at[i] + 1 < m ? at[i] + 1 : 0;
}

// Adds the k cells of a key, of `bits` bits each, to the prefetches.
inline void prefetch_cells(const Parameters& p, const unsigned char* body, std::uint64_t bytes,
                           std::uint64_t hash, unsigned k, std::uint64_t m, std::uint64_t bits,
                           Prefetches& prefetches) noexcept {
  const unsigned char* region = body + region_start(p, bytes, hash);
  if (p.layout == Layout::blocked) return prefetches.add(region);
  for (unsigned i = 0; i < k; ++i) prefetches.add(region + position(hash, i, m) * bits / 8);
}

}  // namespace streamfilter
