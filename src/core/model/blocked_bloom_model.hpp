// The false-positive rate of a Bloom filter whose keys set k different bits of one 64-byte line
// each (Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007).
#pragma once

#include <cstdint>

namespace streamfilter::blocked_bloom_model {

// An upper bound of the rate for n keys in so many lines: the mixture over the numbers of keys that
// a line has. Bits of a line are negatively associated, as those of a key differ, so that k of them
// are all set with at most the product of their probabilities. That is 3 % more than the exact
// probability where k is best for a rate of 1 %.
double rate(double k, double n, double lines) noexcept;

// The k with the lowest rate, at most `most`.
std::uint64_t best_k(double n, double lines, double most) noexcept;

}  // namespace streamfilter::blocked_bloom_model
