// Error rates of queues of fingerprints in buckets.
#pragma once

#include <cmath>

#include "core/model/stream.hpp"

namespace streamfilter::clq_model {

constexpr unsigned kMinBits = 2;
constexpr unsigned kMaxQueue = 64;

// How a 64-byte line is cut: buckets of `length` fingerprints of `bits`. With ages
// (line_timestamps.hpp) there is less room for them. A key that may be in either of two `lines` has
// one bucket in each (line_entries.hpp).
struct Shape {
  unsigned bits;
  unsigned length;
  bool is_aged = false;
  unsigned lines = 1;

  unsigned buckets() const noexcept;

  // Does a bucket fit into a line, and are there so many different fingerprints?
  bool is_possible() const noexcept;

  // A new key's fingerprint is one of those in a full bucket, out of the 2^bits - 1 there are.
  double fpr() const noexcept {
    return std::fmin(1, lines * length / (std::ldexp(1, static_cast<int>(bits)) - 1));
  }
};

// The longest bucket of fingerprints of so many bits.
unsigned longest(unsigned bits, bool is_aged = false, unsigned lines = 1) noexcept;

// The probability that a key has fallen out of its bucket: `length` or more of the `others` keys
// that were seen since its last sight were of the same one of all `buckets`. `others` are distinct,
// new or repeated (with FIFO: those inserted since the key was). Equal fingerprints are neglected,
// which makes it high by a factor of 1/(1 - fpr) at most.
double fnr(double others, double length, double buckets) noexcept;

// The same where new keys enter that of two lines which has taken fewer, `slices` times so many
// `lines`, if the others are new keys.
double fnr_of_two(double others, double length, double lines, double slices) noexcept;

// The error rates over a stream of a filter (LRU) with so many buckets in all. Exact where the keys
// of a bucket are a Poisson number, as those spread by a hash are: its fingerprints are the last
// `length` different ones that were seen, and which these are does not depend on answers.
Prediction predict(const Shape& shape, double buckets, const Stream& stream) noexcept;

// The shape that keeps `fpr` and remembers the most keys, that is, with the longest gap at which
// fnr() is 1 %. `bits`, `length`: 0 or what they must be. False: none keeps it.
bool best_shape(double fpr, unsigned bits, unsigned length, Shape& best, bool is_aged = false,
                unsigned lines = 1) noexcept;

// How many of so many keys to a line are held, as a sum over the time until they are all there in
// which each moment counts by the share of them that have come.
double mean_held(const Shape& shape, double keys) noexcept;

// The best shape where there will be so many keys to a line, more than it remembers: the one that
// holds most of them, in the mean until they are all there.
bool best_shape_for(double keys, double fpr, unsigned bits, unsigned length, Shape& best,
                    bool is_aged = false) noexcept;

}  // namespace streamfilter::clq_model
