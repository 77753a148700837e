// Error rates of Bloom filters in lines of 512 bits with a cap on the ones of a line.
#pragma once

#include "core/model/stream.hpp"

namespace streamfilter::capped_model {

constexpr unsigned kMaxHashes = 32;

// How a line is used: each key sets k different bits; a line keeps at most `ones`, more than k.
struct Setting {
  double k;
  double ones;
};

// The false-positive rate of a line with so many ones at random places.
double line_fpr(double k, double ones) noexcept;

// The false-positive rate without a cap where lines have got `keys` distinct keys in the mean:
// exact for a number that follows a Poisson distribution, which is what keys spread by a hash have.
// The rounding error is counted in.
double blocked_fpr(double k, double keys) noexcept;

// The k, at most 16, with the least blocked_fpr().
unsigned best_k(double keys) noexcept;

// The most ones with which a line keeps `fpr`, at most 512; fewer than k if there are none.
unsigned most_ones(double fpr, unsigned k) noexcept;

// How many keys bring a line to its cap; not before, anything is cleared.
double filling(const Setting& setting) noexcept;

// In a line that is at its cap: the probability that a new key clears a given bit of an older one.
double clearing(const Setting& setting) noexcept;

// In such lines: the false-negative rate of a key that was remembered `keys` new keys (of its line)
// ago. The k bits are taken for independent; see the test for how little that matters.
double fnr(const Setting& setting, double keys) noexcept;

// The same where the number of keys follows a Poisson distribution of that mean; and the share of
// the key's bits that are zeros then.
double mean_fnr(const Setting& setting, double keys) noexcept;
double mean_zeros(const Setting& setting, double keys) noexcept;

// The false-negative rate of a key that was remembered `keys` keys of its line ago, at the end of a
// stream that had `all` keys to a line in the mean: nothing is cleared before a line is at its cap.
double fnr_after(const Setting& setting, double keys, double all) noexcept;

// The error rates over a stream; a line gets the part `of_line` of it; every key is admitted.
// Lines are taken by classes of how many keys they have.
Prediction predict(const Setting& setting, const Stream& of_line) noexcept;

}  // namespace streamfilter::capped_model
