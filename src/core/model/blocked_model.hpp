// Error rates of Bloom filters in lines of 512 bits (Putze, Sanders, Singler, "Cache-, Hash- and
// Space-Efficient Bloom Filters", 2007).
#pragma once

#include <cstdint>

namespace streamfilter::blocked_model {

// The false-positive rate of a line with so many ones at random places, where each key has k
// different bits.
double line_fpr(double k, double ones) noexcept;

// An upper bound of that rate for n keys in so many lines: the mixture over the numbers of keys
// that a line has. Bits of a line are negatively associated, as those of a key differ, so that k of
// them are all set with at most the product of their probabilities. That is 3 % more than the exact
// probability where k is best for a rate of 1 %.
double blocked_bound(double k, double n, double lines) noexcept;

// The k with the lowest bound, at most `most`.
std::uint64_t best_k_by_bound(double n, double lines, double most) noexcept;

}  // namespace streamfilter::blocked_model
