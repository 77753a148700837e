// What is known of a stream before it comes: how many rows and distinct keys, and how its repeats
// are spread.
//
// One function says it all: fresh(age), the probability that a row has not come again `age` rows
// later. Read backwards in time it is the probability that the row after `age` others is new. Its
// integral counts distinct keys, its decrease is the distribution of the repeats' lags (rows since
// the last sight).
#pragma once

#include <algorithm>
#include <cmath>
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

// Filters that hold single keys (lru, timer, sqf, dsqf): their error rates on a stream of uniform
// draws. A repeat is each of the keys seen with equal probability, so the probability that it is
// found is the share of keys held, whichever these are.

namespace streamfilter::exact_store_model {

// Number of n keys that `slices` slices of `capacity` each hold. Keys spread unevenly:
// approximately normally distributed.
inline double held(double n, double capacity, double slices) noexcept {
  const double mean = n / slices;
  if (slices <= 1) return std::min(mean, capacity);
  const double deviation = std::sqrt(mean);
  if (!(deviation > 0)) return 0;
  const double z = (capacity - mean) / deviation,
               density = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0)),
               beyond = std::erfc(z / std::sqrt(2.0)) / 2;
  return std::clamp(slices * (mean - deviation * (density - z * beyond)), 0.0, n);
}

// The mean of rate(n), the false-positive rate after n distinct keys, over all new keys (Simpson).
template <typename Rate>
double mean_fpr(double distinct, Rate rate) noexcept {
  constexpr int kSteps = 512;
  double sum = rate(0) + rate(distinct);
  for (int i = 1; i < kSteps; ++i) sum += (i % 2 == 1 ? 4 : 2) * rate(distinct * i / kSteps);
  return sum / (3 * kSteps);
}

// The false-negative rate if held_of(n) of n keys are held, and rate(n) of the others are mistaken
// for one of them.
template <typename Held, typename Rate>
double mean_fnr(const Stream& stream, Held held_of, Rate rate) noexcept {
  if (!(stream.repeats() > 0)) return std::numeric_limits<double>::quiet_NaN();
  const Ages time(stream, 1e-3 * stream.distinct());
  double negatives = 0, repeats = 0, before = 0;
  for (unsigned i = 1; i <= Ages::kSteps; ++i) {
    const double n = stream.distinct_in(time[i]),
                 now = n > 0 ? (1 - std::min(1.0, held_of(n) / n)) * (1 - rate(n)) : 0;
    const double back = time[i] - time[i - 1] - (n - stream.distinct_in(time[i - 1]));
    negatives += back * (now + before) / 2;
    repeats += back;
    before = now;
  }
  return std::clamp(negatives / repeats, 0.0, 1.0);
}

}  // namespace streamfilter::exact_store_model
