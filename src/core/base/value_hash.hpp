// Hashes of single values. Values have the same hash exactly if SQL calls them equal. Part of the
// promised interface: the same in the server, in libstreamfilter and in every release.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/hash.hpp"

namespace streamfilter {

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

}  // namespace streamfilter
