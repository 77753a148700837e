// A stream in place of one that is not public, made from two curves that were printed of it: the
// number of distinct keys among the first rows, and the share of repeats that a buffer of the n
// most recent keys (LRU) misses. Keys are numbered 0, 1, … in the order they first come.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/lib/streams.hpp"

namespace bench {

struct Knot {
  double at, value;
};

class Crawl {
 public:
  // growth: (rows, distinct keys among them) from (1, 1) on; between knots a power law. misses:
  // (n, share of the repeats missed) from (1, 1) to (all keys, 0); between knots straight in log n.
  Crawl(std::vector<Knot> growth, std::vector<Knot> misses, std::uint64_t rows, std::uint64_t seed)
      : growth_(std::move(growth)),
        misses_(std::move(misses)),
        marks_(rows + 1),
        keys_(rows + 1),
        random_(seed) {
    calibrate(static_cast<double>(rows));
  }

  std::uint64_t next() {
    const double row = static_cast<double>(row_), count = static_cast<double>(count_);
    std::uint64_t key = count_;
    if (random_.chance(distinct(row + 1) - distinct(row))) {
      ++count_;
    } else {
      const double far = missed(count);
      const double depth = std::ceil(depth_of(far + (1 - far) * random_.unit()));
      const std::uint64_t at =
          find(count_ - static_cast<std::uint64_t>(std::clamp(depth, 1.0, count)) + 1);
      key = keys_[at];
      mark(at, -1);
    }
    keys_[++row_] = static_cast<std::uint32_t>(key);
    mark(row_, +1);
    return key;
  }

 private:
  // The expected number of distinct keys among the first rows.
  double distinct(double rows) const {
    if (rows <= 1) return rows;
    std::size_t i = 1;
    while (i + 1 < growth_.size() && growth_[i].at < rows) ++i;
    const Knot &a = growth_[i - 1], &b = growth_[i];
    return a.value * std::pow(rows / a.at, std::log(b.value / a.value) / std::log(b.at / a.at));
  }

  double missed(double n) const {
    if (n >= misses_.back().at) return 0;
    std::size_t i = 1;
    while (misses_[i].at < n) ++i;
    const Knot &a = misses_[i - 1], &b = misses_[i];
    return a.value + (b.value - a.value) * std::log(n / a.at) / std::log(b.at / a.at);
  }

  // The inverse of that.
  double depth_of(double share) const {
    std::size_t i = 1;
    while (i + 1 < misses_.size() && misses_[i].value > share) ++i;
    const Knot &a = misses_[i - 1], &b = misses_[i];
    return a.at * std::pow(b.at / a.at, (share - a.value) / (b.value - a.value));
  }

  // A key cannot return from a depth beyond the number of keys, so early repeats come from nearer.
  // Later ones are drawn from deeper, until the shares of the whole stream are the given ones.
  void calibrate(double rows) {
    constexpr int kRounds = 30, kSamples = 400;
    const std::vector<Knot> wanted = misses_;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> sums(wanted.size());
      double repeats = 0;
      for (int sample = 0; sample < kSamples; ++sample) {
        const double row = rows * (sample + 0.5) / kSamples, count = distinct(row);
        const double weight = 1 - (distinct(row + 1) - count), far = missed(count);
        repeats += weight;
        for (std::size_t i = 0; i < wanted.size() && wanted[i].at < count; ++i)
          sums[i] += weight * (misses_[i].value - far) / (1 - far);
      }
      for (std::size_t i = 1; i + 1 < wanted.size(); ++i)
        if (sums[i] > 0)
          misses_[i].value = std::min(misses_[i].value * wanted[i].value * repeats / sums[i],
                                      misses_[i - 1].value);
    }
  }

  // Marks are at the last row of every key, counted in a Fenwick tree.
  void mark(std::uint64_t row, std::int32_t change) {
    for (; row < marks_.size(); row += row & (~row + 1))
      marks_[row] += static_cast<std::uint32_t>(change);
  }

  // The row of the mark of this rank, from 1 on.
  std::uint64_t find(std::uint64_t rank) const {
    std::uint64_t step = 1, row = 0;
    while (step * 2 < marks_.size()) step *= 2;
    for (; step > 0; step /= 2)
      if (row + step < marks_.size() && marks_[row + step] < rank) rank -= marks_[row += step];
    return row + 1;
  }

  std::vector<Knot> growth_, misses_;
  std::vector<std::uint32_t> marks_, keys_;
  std::uint64_t row_ = 0, count_ = 0;
  Random random_;
};

}  // namespace bench
