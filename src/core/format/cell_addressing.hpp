// Where the cells of a key lie: anywhere in the body, or with layout blocked in one 64-byte line.
#pragma once

#include <algorithm>

#include "core/base/hash.hpp"
#include "core/base/prefetch_list.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

constexpr std::uint64_t kLineBytes = 64;

// A key's cells are drawn from a region. These are the bytes of all regions together.
inline std::uint64_t region_bytes(const Parameters& p, std::uint64_t bytes) noexcept {
  return p.layout == Layout::blocked ? kLineBytes : bytes;
}

// Start of a key's region.
inline std::uint64_t region_start(const Parameters& p, std::uint64_t bytes,
                                  std::uint64_t hash) noexcept {
  constexpr unsigned kRegionHash = 1000;  // a number that no cell of a key has
  if (p.layout != Layout::blocked) return 0;
  return position(hash, kRegionHash, bytes / kLineBytes) * kLineBytes;
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
