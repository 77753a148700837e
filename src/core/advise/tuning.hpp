// What a running filter would miss with less or more memory, from the ranks where it has found
// its repeats; no key is kept for it.
//
// The filter has buckets of B ranks in the order of recency. A key is, after `lag` different
// others have been seen since its last sight, found at rank j if j of these are of its
// bucket: with n buckets, a Poisson number of mean lag/n. With f times the memory there are f n
// buckets, so f times as many others find room before the key falls out (stack distances:
// R. Mattson et al., Evaluation Techniques for Storage Hierarchies, IBM Systems Journal 9, 1970;
// here seen through the hash that spreads keys over buckets).
#pragma once

#include "core/kind/kind_registry.hpp"

namespace streamfilter {

// What a filter has answered.
struct Answers {
  const std::uint64_t* hits;           // by rank
  unsigned ranks;                      // of a bucket, 1 … kMaxRanks
  std::uint64_t misses;                // reported as new
  double fpr;                          // of the filter when it is full
  const double* false_hits = nullptr;  // of `hits`, by rank; nullptr: as of a full filter
  double buckets = 1e18;
};

// Rows reported as new are counted by how full the filter was when they were: a filter that was
// empty then has taken none of them for a repeat, whatever it does now.
constexpr unsigned kFillSteps = 64;

inline unsigned fill_step(double fill) noexcept {
  return fill > 0 ? static_cast<unsigned>(std::fmin(fill, 1) * kFillSteps + 0.5) : 0;
}

// Hits that were none, by rank, as expected from rows reported as new: kFillSteps + 1 numbers
// of them, by how full the filter was, whose rate is `fpr` when full.
void expect_false_hits(const std::uint64_t* misses, unsigned ranks, double fpr,
                       double* false_hits) noexcept;

// With some factor of memory.
struct Tuned {
  double found;  // repeats within kReach that would have been found

  // Share of these repeats that would have been missed, and its limits; NaN if there are none. Lags
  // that are longer than memory reaches leave no trace, so these suppose that repeats beyond the
  // last rank
  double fnr;       // go on as they become fewer over the second half of the ranks
  double fnr_low;   // are none
  double fnr_high;  // are at every rank as many as at the last ones: lags do not bunch there. Where
                    // they seem to, or nothing is known: are all rows that were reported as new

  double error;  // standard error of the three, by chance and by how lags are found; NaN likewise
};

class Tuning {
 public:
  // A repeat counts whose key is within so many times the ranks of a bucket: about as many
  // times as many different keys ago as the filter has ranks.
  static constexpr unsigned kReach = 4;

  explicit Tuning(const Answers& answers) noexcept;

  // With `factor` times the memory, 1/kReach to kReach, in a filter of the same bits and bucket.
  Tuned at(double factor) const noexcept;

 private:
  enum Tail : unsigned { continued, none, level, kTails };

  void take_hits(const Answers& answers) noexcept;
  void take_away(const double* false_hits) noexcept;
  bool has_repeats() const noexcept;
  bool rises() const noexcept;
  void continue_hits(double most) noexcept;
  void expect_the_worst(double misses) noexcept;
  void find_lags() noexcept;
  double found(double factor, Tail tail) const noexcept;
  double found_with_less(double factor, const double* weight) const noexcept;
  double found_with_more(double factor, Tail tail) const noexcept;
  double repeats(Tail tail) const noexcept;
  double error_at(double factor) const noexcept;

  static constexpr unsigned kLags = 128;

  unsigned ranks_;
  double fpr_;
  double hits_[kTails][kReach * kMaxRanks];     // by rank, without false positives
  double raw_[kMaxRanks], surplus_[kMaxRanks];  // with them, and without, if below none
  double seen_;                                 // all hits in a rank that there is
  double false_ = 0;                            // what was taken away from them
  double buckets_;
  double lag_[kLags], weight_[kLags];  // lags in others per bucket, repeats of each
  double early_[kLags];                // … after a quarter of the rounds
};

}  // namespace streamfilter
