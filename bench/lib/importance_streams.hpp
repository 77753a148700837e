// The synthetic streams of Bhoraskar et al. 2013 §IV-D: importances 1..50 have equally many keys. A
// key's frequency is the same for all, or inversely or directly proportional to its importance
// (figures 9, 12 and 15).
//
// The paper gives the share of repeats (10, 30 or 50 %), not their origin. Here elements are
// independent draws from a universe of keys, whose size makes that share right on average. Only
// this reading makes the share of new elements rise with the importance in the inverse case, as
// figure 13 shows.
#pragma once

#include <cmath>
#include <cstdint>

#include "bench/lib/streams.hpp"

namespace bench {

constexpr unsigned kImportances = 50;

enum class Frequency : unsigned { equal, inverse, proportional };

class ImportanceStream {
 public:
  // `repeats` 0: no key comes twice; the importances are the same.
  ImportanceStream(std::uint64_t rows, double repeats, Frequency frequency, std::uint64_t seed)
      : frequency_(frequency), random_(seed) {
    for (unsigned i = 1; i <= kImportances; ++i) below_[i] = below_[i - 1] + weight(i);
    if (repeats > 0) per_importance_ = keys_for(static_cast<double>(rows), repeats);
  }

  // Keys are 0..universe()-1; 0: unlimited.
  std::uint64_t universe() const { return per_importance_ * kImportances; }
  static unsigned importance(std::uint64_t key) {
    return static_cast<unsigned>(key % kImportances) + 1;
  }
  // The share of the elements that have importance i.
  double share(unsigned i) const { return weight(i) / below_[kImportances]; }

  std::uint64_t next() {
    const double at = random_.unit() * below_[kImportances];
    unsigned i = 0;
    while (i + 1 < kImportances && at >= below_[i + 1]) ++i;
    const std::uint64_t key = per_importance_ > 0 ? random_.below(per_importance_) : count_++;
    return key * kImportances + i;
  }

 private:
  double weight(unsigned i) const {
    if (frequency_ == Frequency::equal) return 1;
    return frequency_ == Frequency::inverse ? 1.0 / i : i;
  }

  // A key of expected count c appears in the stream with probability 1 - (1 - c/rows)^rows.
  double expected_distinct(double rows, double keys) const {
    double sum = 0;
    for (unsigned i = 1; i <= kImportances; ++i)
      sum -= keys * std::expm1(rows * std::log1p(-share(i) / keys));
    return sum;
  }
  std::uint64_t keys_for(double rows, double repeats) const {
    double low = 1, high = rows / repeats;
    for (int round = 0; round < 60; ++round) {
      const double middle = (low + high) / 2;
      (expected_distinct(rows, middle) < rows * (1 - repeats) ? low : high) = middle;
    }
    return static_cast<std::uint64_t>(std::ceil(high));
  }

  Frequency frequency_;
  Random random_;
  double below_[kImportances + 1] = {};  // below_[i]: the weights of 1..i
  std::uint64_t per_importance_ = 0, count_ = 0;
};

}  // namespace bench
