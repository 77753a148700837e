// The false-positive rate of a Bloom filter whose keys set k different bits of one 64-byte line
// each (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007).
#pragma once

#include <cstdint>

namespace streamfilter::blocked_bloom_model {

// An upper bound for n keys in so many lines, 1 to 3 % above the rate itself for up to 8 bits a
// key: the mixture over the numbers of keys that a line has. Bits of a line are negatively
// associated, as those of a key differ, so that k of them are set with at most the product of their
// probabilities.
double rate(double k, double n, double lines) noexcept;

// The k with the lowest rate, at most `most`.
std::uint64_t best_k(double n, double lines, double most) noexcept;

}  // namespace streamfilter::blocked_bloom_model
