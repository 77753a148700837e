// Error rates of Bloom filters in lines of 512 bits (Putze, Sanders, Singler, "Cache-, Hash- and
// Space-Efficient Bloom Filters", 2007), without and with a cap on the ones of a line.
#pragma once

#include <cstdint>

#include "core/model/stream.hpp"

namespace streamfilter::capped_model {

constexpr unsigned kMaxHashes = 32;

// Use of a line: each key sets k different bits; the line keeps at most `ones`, more than k.
struct Setting {
  double k;
  double ones;
};

// The false-positive rate of a line with so many ones at random places.
double line_fpr(double k, double ones) noexcept;

// The false-positive rate without a cap if lines have `keys` distinct keys in the mean: exact for a
// Poisson distributed number, as for keys that a hash spreads. Includes the rounding error.
double blocked_fpr(double k, double keys) noexcept;

// The k, at most 16, with the least blocked_fpr().
unsigned best_k(double keys) noexcept;

// An upper bound of that rate for n keys in so many lines: the mixture over the numbers of keys
// that a line has. Bits of a line are negatively associated, as those of a key differ, so that k of
// them are all set with at most the product of their probabilities. That is 3 % more than the exact
// probability where k is best for a rate of 1 %.
double blocked_bound(double k, double n, double lines) noexcept;

// The k with the lowest bound, at most `most`.
std::uint64_t best_k_by_bound(double n, double lines, double most) noexcept;

// The largest number of ones with which a line keeps `fpr`, at most 512; less than k if there is
// none.
unsigned most_ones(double fpr, unsigned k) noexcept;

// Number of keys that bring a line to its cap; before that, nothing is cleared.
double filling(const Setting& setting) noexcept;

// In a line at its cap: the probability that a new key clears a given bit of an older one.
double clearing(const Setting& setting) noexcept;

// In such lines: the false-negative rate of a key remembered `keys` new keys (of its line) ago.
// Treats the k bits as independent; the test shows how little that matters.
double fnr(const Setting& setting, double keys) noexcept;

// The mean of fnr for a Poisson number of keys with that mean, and the share of the key's bits that
// are zero then.
double mean_fnr(const Setting& setting, double keys) noexcept;
double mean_zeros(const Setting& setting, double keys) noexcept;

// The false-negative rate of a key remembered `keys` keys of its line ago, at the end of a stream
// with `all` keys per line in the mean: nothing is cleared before a line is at its cap.
double fnr_after(const Setting& setting, double keys, double all) noexcept;

// The error rates over a stream, where a line gets the part `of_line` and every key is admitted.
// Groups lines by their numbers of keys.
Prediction predict(const Setting& setting, const Stream& of_line) noexcept;

}  // namespace streamfilter::capped_model
