// The generator behind every random choice of a filter. Its state is one word in the filter's own
// bytes, so equal streams give equal filters.
#pragma once

#include "core/base/hash.hpp"

namespace streamfilter {

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
