// Error rates of queues of fingerprints in buckets.
#pragma once

#include "core/model/stream.hpp"

namespace streamfilter::clq_model {

constexpr unsigned kMinBits = 2;
constexpr unsigned kMaxQueue = 64;

// How a 64-byte line is cut: buckets of `length` fingerprints of `bits`. Ages (line_tail.hpp)
// leave less room for them. A key that may be in either of two `lines` has one bucket in each
// (line_tail.hpp).
struct LineShape {
  unsigned bits;
  unsigned length;
  bool is_aged = false;
  unsigned lines = 1;

  unsigned buckets() const noexcept;

  // Does a bucket fit into a line, and are there enough different fingerprints?
  bool is_possible() const noexcept;

  // A new key's fingerprint equals one of those in a full bucket, out of 2^bits - 1.
  double fpr() const noexcept {
    return std::fmin(1, lines * length / (std::ldexp(1, static_cast<int>(bits)) - 1));
  }
};

// The longest bucket of fingerprints of so many bits.
unsigned longest(unsigned bits, bool is_aged = false, unsigned lines = 1) noexcept;

// The probability that a key has fallen out of its bucket: at least `length` of the `others` keys
// seen since its last sight were in the same bucket, out of `buckets`. `others` are distinct, new
// or repeated (with FIFO: keys inserted since). Neglects equal fingerprints, which makes the result
// too high by a factor of at most 1/(1 - fpr).
double fnr(double others, double length, double buckets) noexcept;

// With FIFO: the probability that the fingerprint of another key, anywhere in the queue, falls out.
// A key that is taken for that one enters nothing, and goes with it.
double moved(double others, double length, double buckets) noexcept;

// The rate if new keys enter the line of two that has had fewer entries, with `slices` times
// `lines` lines, and all others are new keys.
double fnr_of_two(double others, double length, double lines, double slices) noexcept;

// The error rates over a stream of a filter (LRU) with `buckets` buckets in all. Exact if the
// number of keys of a bucket is Poisson distributed, as for keys that a hash spreads: its
// fingerprints are the last `length` different ones seen, whatever the answers.
Prediction predict(const LineShape& shape, double buckets, const Stream& stream) noexcept;

// The shape that keeps `fpr` and remembers the most keys, that is, with the longest gap at which
// fnr() is 1 %. `bits`, `length`: 0 or the required values. False: none keeps it.
bool best_shape(double fpr, unsigned bits, unsigned length, LineShape& best, bool is_aged = false,
                unsigned lines = 1) noexcept;

// Mean number of keys held, out of `keys` per line, over the time until all have come; each moment
// is weighted by the share that has come.
double mean_held(const LineShape& shape, double keys) noexcept;

// The best shape for `keys` keys per line, more than it remembers: the one that holds most of them,
// in the mean until all have come.
bool best_shape_for(double keys, double fpr, unsigned bits, unsigned length, LineShape& best,
                    bool is_aged = false) noexcept;

}  // namespace streamfilter::clq_model
