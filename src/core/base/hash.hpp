// 64-bit hashing: keys by XXH3, positions by mixing that one hash again.
#pragma once

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace streamfilter {

// XXH3 of `size` bytes. The same on every machine and build; golden values are in the unit tests.
inline std::uint64_t hash_bytes(const void* bytes, std::size_t size, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

// Hash of one 64-bit word.
inline std::uint64_t hash_word(std::uint64_t word, std::uint64_t seed) noexcept {
  return hash_bytes(&word, sizeof word, seed);
}

// The key hash of several columns from the hashes of each.
inline std::uint64_t hash_columns(const std::uint64_t* columns, std::size_t count,
                                  std::uint64_t seed) noexcept {
  return hash_bytes(columns, count * sizeof *columns, seed);
}

// Finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which every input bit
// flips every output bit with probability close to one half.
inline std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;

// Maps a uniform 64-bit word to 0..n-1 without division (Lemire 2019); n may exceed 2^32.
inline std::uint64_t scale(std::uint64_t word, std::uint64_t n) noexcept {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(word) * n) >> 64);
}

// The hash functions h_1(x) … h_K(x) of the papers, made from one 64-bit hash of x.
// Position i is uniform over 0..n-1 and, for different i, independent for all practical purposes.
inline std::uint64_t position(std::uint64_t hash, unsigned i, std::uint64_t n) noexcept {
  return scale(mix64(hash + (i + 1) * kGoldenRatio), n);
}

// Parts of a stream: which of n consumers, shards or slices an event belongs to, by its key. Part
// of the promised interface: the same on every machine and in every release.

// The seed for hashes given to `part_of`. No filter has it, so the keys of one part spread
// evenly over the slices and bits of a filter ("streamfi" in ASCII).
constexpr std::uint64_t kPartSeed = 0x73747265616d6669;

// The part, 0..n-1, of a key with this hash. Part i of n consists of the parts i j … i j + j - 1 of
// n j.
inline std::uint32_t part_of(std::uint64_t hash, std::uint32_t n) noexcept {
  return static_cast<std::uint32_t>(scale(mix64(hash), n));
}

}  // namespace streamfilter
