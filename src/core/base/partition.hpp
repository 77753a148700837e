// Parts of a stream: which of n consumers, shards or slices an event belongs to, by its key. Part
// of the promised interface: the same on every machine and in every release.
#pragma once

#include "core/base/hash.hpp"

namespace streamfilter {

// The seed for hashes given to `partition_of`. No filter has it, so the keys of one part spread
// evenly over the slices and bits of a filter ("streamfi" in ASCII).
constexpr std::uint64_t kPartitionSeed = 0x73747265616d6669;

// The part, 0..n-1, of a key with this hash. Part i of n consists of the parts i j … i j + j - 1 of
// n j.
inline std::uint32_t partition_of(std::uint64_t hash, std::uint32_t n) noexcept {
  return static_cast<std::uint32_t>(scale(mix64(hash), n));
}

}  // namespace streamfilter
