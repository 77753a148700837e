// What is known of a stream before it comes: how many rows and distinct keys, and how its repeats
// are spread.
//
// One function says it all: fresh(age), the probability that a row has not come again `age` rows
// later. Read backwards in time it is the probability that the row after `age` others is new. Its
// integral counts distinct keys, its decrease is the distribution of the repeats' lags (rows since
// the last sight).
#pragma once

#include <limits>

namespace streamfilter {

// What a filter will do on a whole stream, as streamfilter_evaluate counts it; NaN: unknown.
struct Prediction {
  double fpr;  // false positives / rows that are new
  double fnr;  // false negatives / rows that are repeats; NaN also if there are none
};

inline constexpr Prediction kNoPrediction = {std::numeric_limits<double>::quiet_NaN(),
                                             std::numeric_limits<double>::quiet_NaN()};

class Stream {
 public:
  // Uniform draws from as many keys as let `rows` of them meet `distinct` (0 < distinct <= rows):
  // a repeat is each of the keys seen with equal probability.
  static Stream uniform(double rows, double distinct) noexcept;

  // Every repeat comes `gap` rows after the last sight of its key (0 < gap <= distinct): a row that
  // has `gap` others before it is, with a fixed probability, the first of those again.
  static Stream at_gap(double rows, double distinct, double gap) noexcept;

  // The stream of Bera et al. 2012, tables 1-9: `distinct` keys that come once each and
  // rows - distinct uniform draws from them, all in random order.
  static Stream listed(double rows, double distinct) noexcept;

  double rows() const noexcept { return rows_; }
  double distinct() const noexcept { return distinct_; }
  double repeats() const noexcept { return rows_ - distinct_; }

  // 0: not the same for all repeats.
  double gap() const noexcept { return gap_; }

  // at_gap: the probability that a row comes again.
  double again() const noexcept { return again_; }

  double fresh(double age) const noexcept;

  // Distinct keys among so many rows.
  double distinct_in(double rows) const noexcept;

  // Where among rows `from` to `to` the lags between the two lie, as a share: at the gap, else
  // about in the middle.
  double lags_between(double from, double to) const noexcept {
    return from < gap_ && gap_ <= to ? (gap_ - from) / (to - from) : 0.5;
  }

  // The rows and keys that one of `parts` equal parts of all keys gets.
  Stream part(double parts) const noexcept;

 private:
  double undrawn(double rows) const noexcept;

  double rows_ = 0, distinct_ = 0;
  double keys_ = 0;   // that draws are from
  double list_ = 0;   // rate of a key's one certain arrival, while it is due
  double draws_ = 0;  // rate of its other arrivals
  double gap_ = 0, again_ = 0;
};

// From 0 to `end`: points that are even in the logarithm beyond `first`, with a jump of the
// stream's lags on the grid.
class Ages {
 public:
  static constexpr unsigned kSteps = 1024;

  Ages(const Stream& stream, double first) noexcept;
  double operator[](unsigned i) const noexcept { return at_[i]; }

 private:
  double at_[kSteps + 1];
};

}  // namespace streamfilter
