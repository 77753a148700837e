// Shapes of lines that are quotient filters (bits/quotient_line.hpp), and their error rates where a
// key may be in either of two lines and enters the emptier one.
#pragma once

#include "core/bits/quotient_line.hpp"
#include "core/model/stream.hpp"

namespace streamfilter::vector_quotient_model {

// The most slots that a line has beside so many buckets.
constexpr unsigned slots_of(unsigned bits, unsigned buckets, unsigned ages) noexcept {
  return std::min(kMaxSlots, (kLineBits - buckets) / (bits + ages + 1));
}

// Number of tags that a key can have.
inline double tags(const AnyShape& shape) noexcept {
  return std::ldexp(shape.buckets, static_cast<int>(shape.bits));
}

// The false-positive rate if lines have so many entries in the mean. Never have both lines of a key
// its tag; with probability 1/lines they are one.
double fpr(const AnyShape& shape, double entries, double lines) noexcept;

// The rate of full lines, at most.
inline double fpr_bound(const AnyShape& shape) noexcept { return 2 * shape.slots / tags(shape); }

// The shape that holds the most keys with fpr_bound() times `growth` at most `fpr`; of equals, the
// one with the lowest rate. `bits`, `buckets`: 0 or the required values. False: there is none.
bool best_shape(double fpr, double growth, unsigned bits, unsigned buckets, unsigned ages,
                AnyShape& best) noexcept;

// Keys per line up to which one in 10,000 is lost because both of its lines are full; one in 1,000
// of those in a window, if so many are kept.
double held(const AnyShape& shape, double lines) noexcept;

// With ages, where the oldest of two full lines goes: the probability that an entry is gone after
// `later` others per line have come.
double gone(const AnyShape& shape, double later) noexcept;

// The error rates over a stream without a window of `slices` times `lines` lines. NaN for repeats
// at one gap: which keys are lost depends on when they came first.
Prediction predict(const AnyShape& shape, double lines, double slices,
                   const Stream& stream) noexcept;

}  // namespace streamfilter::vector_quotient_model
