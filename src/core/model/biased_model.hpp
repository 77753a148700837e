// Models of the kinds of "Advanced Bloom Filter Based Algorithms for Efficient Approximate Data
// De-Duplication in Streams" (Bera, Dutta, Narang, Bhattacherjee 2012), with the paper's symbols: k
// Bloom filters of s bits each, X the probability that a new key finds its k bits set.
//
// The recurrences of §3-5 (Eq. 3.27, 4.3, 4.5, 5.2) count setting a bit that is set already as a
// new one, and so find that X tends to 1 always. What follows are the corrected ones.
#pragma once

#include "core/model/stream.hpp"

namespace streamfilter::biased_model {

enum class Scheme {
  bsbf,           // Algorithm 2
  bsbfsd,         // Algorithm 3
  rlbsbf,         // Algorithm 4
  rsbf_printed,   // Algorithm 1
  rsbf_measured,  // what gives the printed figures of RSBF: every element resets and sets
};

struct Setting {
  Scheme scheme;
  double k;
  double s;
  double p_star = 0.03;  // Algorithm 1: its third phase starts at element s / p_star
};

// The load y of an array after an endless stream of new keys, where s y' = (1-y) - c y (1-y^k) is
// zero: c = 1 (BSBF), 1/k (BSBFSD), y (RLBSBF). For RSBF the load that it never exceeds: what s new
// keys leave (printed, end of the first phase) or as many resets as settings (measured).
double limit_load(const Setting& setting) noexcept;

// The false-positive rate that is not exceeded while there are at most `keys` distinct keys
// (infinity: ever). The bits set are among those that a Bloom filter of k arrays would set for the
// same keys, whatever is reset: (1 - (1-1/s)^keys)^k on any stream. And X does not exceed
// limit_load^k: for RSBF on any stream that is not made by looking at answers or hashes, because
// what is reset does not depend on answers; for the others in the mean of many bits, from below
// (few bits: times 1 + k^2/s).
double fpr_bound(const Setting& setting, double keys) noexcept;

// The load of one array that this bound allows in the long run.
double limit_of_array(const Setting& setting) noexcept;

// The false-negative rate of a key last seen `gap` elements ago on the stream that forgets fastest:
// new keys alone, at the load at which most bits are reset. Then a bit of the key is reset at rate
// L/s and set at rate 1/s per element, L = max of c (1-y^k) over y, so it is still set with
// probability u = (1 + L exp(-(1+L) gap/s)) / (1 + L), and the rate is 1 - u^k.
// For rsbf_printed this is the rate in the third phase if new keys came before (half of the bits
// are set then; fewer if few keys came, and each is reset sooner). In the first phase nothing is
// reset; in the second, most elements are not remembered at all.
double fnr_bound(const Setting& setting, double gap) noexcept;

struct Rates {
  double load;  // share of bits set
  double fpr;   // false positives / new elements
  double fnr;   // false negatives / repeats
};

// The course of a filter over a stream.
//
// A bit is unset if, since its last reset (or ever), no element that hashes to it was inserted.
// Resets come to a bit as a Poisson process, at a rate that depends on time only; how many keys
// were inserted since, each hashing to it with probability 1/s, is a matter of the stream.
// So the probability that a bit is unset is an integral over the time of its last reset, for a new
// key's bit from the beginning, for a repeat's from its last insertion; averaged over the repeats'
// lags, this gives the rates, and they give the resets: a Volterra equation, solved step by step on
// a grid that is even in the logarithm of time. Assumptions: many bits (rates are their means), the
// k arrays independent; for rsbf_printed, which passes elements over, that repeats come at random
// (no Stream::at_gap).
class Course {
 public:
  Course(const Setting& setting, const Stream& stream) noexcept;

  // The rates of the element after `row` others, if it is new and if it is a repeat.
  Rates at(double row) const noexcept;

  // Rates of the first `row` elements; the load after them.
  Rates until(double row) const noexcept;

 private:
  static constexpr unsigned kSteps = 256;

  struct Next;

  void make_grid() noexcept;
  void put_on_grid(double time) noexcept;
  Next next(unsigned i) const noexcept;
  double resets(unsigned i, const Next& next) const noexcept;
  double insertion(double t) const noexcept;
  void step(unsigned i) noexcept;
  double between(const double (&values)[kSteps + 1], double row) const noexcept;

  Setting setting_;
  Stream stream_;  // as one bit sees it: time is counted in s elements
  double grid_ = 0;
  double constant_load_ = 0;  // rsbf_printed: from the third phase on
  double time_[kSteps + 1] = {};
  double reset_rate_[kSteps + 1] = {}, reset_sum_[kSteps + 1] = {};  // of one bit
  double inserted_sum_[kSteps + 1] = {};  // elements inserted, as far as a coin decides
  double load_[kSteps + 1] = {}, fpr_[kSteps + 1] = {}, fnr_[kSteps + 1] = {};
  double new_sum_[kSteps + 1] = {}, positive_sum_[kSteps + 1] = {}, negative_sum_[kSteps + 1] = {};
};

// Rates over a whole stream.
Rates over_stream(const Setting& setting, const Stream& stream) noexcept;

// The same, with NaN where there is no such rate: for rsbf_printed on Stream::at_gap, and without
// repeats.
Prediction predict(const Setting& setting, const Stream& stream) noexcept;

}  // namespace streamfilter::biased_model
