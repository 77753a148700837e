// 64-bit hashing: keys by XXH3, positions by mixing that one hash again.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

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

// Hashes of single values. Values have the same hash exactly if SQL calls them equal. Part of the
// promised interface: the same in the server, in libstreamfilter and in every release.

// A hash that also depends on earlier ones.
inline std::uint64_t chain(std::uint64_t hash, std::uint64_t next, std::uint64_t seed) noexcept {
  const std::uint64_t words[] = {hash, next};
  return hash_bytes(words, sizeof words, seed);
}

// The hash of a NULL within a key. Not made by XXH3, so that no value is certain to share it.
inline std::uint64_t null_hash(std::uint64_t seed) noexcept { return mix64(seed ^ kGoldenRatio); }

// -0 equals 0, and every NaN equals every other.
inline std::uint64_t hash_real(double real, std::uint64_t seed) noexcept {
  if (real == 0) real = 0;
  if (std::isnan(real)) real = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t bits;
  std::memcpy(&bits, &real, sizeof bits);
  return hash_word(bits, seed);
}

// Equal as in interval_eq: a day has 24 hours, a month 30 days.
inline std::uint64_t hash_interval(std::int32_t months, std::int32_t days,
                                   std::int64_t microseconds, std::uint64_t seed) noexcept {
  const __int128 all = static_cast<std::int64_t>(months) * 30 + days;
  const __int128 span = all * 86400000000 + microseconds;
  return hash_bytes(&span, sizeof span, seed);
}

// Hashes a decimal number by its digits to base 10000 (16 bits each, no zeros at either end), the
// power of 10000 of the first digit, and its sign.
inline std::uint64_t decimal_hash(std::uint64_t hash_of_digits, int weight, bool negative,
                                  std::uint64_t seed) noexcept {
  const std::uint64_t scale = static_cast<std::uint64_t>(std::int64_t{weight}) * 2 + negative;
  return chain(hash_of_digits, scale, seed);
}

// Decimals without digits, as the server numbers them.
enum class SpecialDecimal : std::uint16_t {
  zero = 0,
  nan = 0xC000,
  infinity = 0xD000,
  minus_infinity = 0xF000,
};
inline std::uint64_t decimal_hash(SpecialDecimal special, std::uint64_t seed) noexcept {
  return hash_word(static_cast<std::uint64_t>(special), seed);
}

// An array of one dimension and lower bound 1 from the hashes of its elements.
inline std::uint64_t hash_array(const std::uint64_t* elements, std::size_t count,
                                std::uint64_t seed) noexcept {
  if (count == 0) return hash_word(0, seed);  // no dimensions
  std::uint64_t hash = hash_word(1, seed);
  hash = chain(hash, count, seed);
  hash = chain(hash, 1, seed);
  for (std::size_t i = 0; i < count; ++i) hash = chain(hash, elements[i], seed);
  return hash;
}

// The generator behind every random choice of a filter. Its state is one word in the filter's own
// bytes, so equal streams give equal filters.

// splitmix64: period 2^64. `state` advances with each call.
inline std::uint64_t next_random(std::uint64_t& state) noexcept {
  state += kGoldenRatio;
  return mix64(state);
}

// Kinds that forget at random stir in their first key. Otherwise filters of one seed would forget
// the same cells, and look, once merged, as if they had keys in common.
inline void stir(std::uint64_t& state, std::uint64_t hash) noexcept { state = mix64(state ^ hash); }

// Uniform over 0..n-1.
inline std::uint64_t random_below(std::uint64_t& state, std::uint64_t n) noexcept {
  return scale(next_random(state), n);
}

// True with the given probability (resolution 2^-53).
inline bool random_chance(std::uint64_t& state, double probability) noexcept {
  return static_cast<double>(next_random(state) >> 11) * 0x1p-53 < probability;
}

}  // namespace streamfilter
