// A stream in memory, for running many filters on it. Keys are renumbered in the order they first
// come, which also tells the exact truth.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "bench/lib/figures.hpp"

namespace bench {

class StoredStream {
 public:
  template <typename Key>
  void add(const Key& key, std::unordered_map<Key, std::uint32_t>& numbers) {
    add_number(numbers.try_emplace(key, distinct_).first->second);
  }
  // The number of a known key, or the next number for a new one.
  void add_number(std::uint32_t number) {
    if (number == distinct_) {
      ++distinct_;
      last_.push_back(0);
    } else {
      const std::uint64_t between = keys_.size() - last_[number] - 1;
      gaps_[bin(static_cast<double>(between))] += 1;
    }
    last_[number] = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(number);
  }
  std::uint32_t new_number() const { return distinct_; }

  double rows() const { return static_cast<double>(keys_.size()); }
  double distinct() const { return distinct_; }
  double repeats() const { return rows() - distinct(); }

  // Calls visit(row, key, is it a repeat) for every row.
  template <typename Visit>
  void for_each_row(Visit visit) const {
    std::uint32_t fresh = 0;
    for (std::size_t row = 0; row < keys_.size(); ++row) {
      const bool repeat = keys_[row] < fresh;
      fresh += !repeat;
      visit(row, keys_[row], repeat);
    }
  }

  // Calls visit(rows so far) after every row.
  template <typename Visit>
  Errors run(Filter& filter, Visit visit) const {
    Errors counts;
    for_each_row([&](std::size_t row, std::uint32_t key, bool repeat) {
      counts.count(repeat, filter.insert(filter.element(key)));
      visit(row + 1);
    });
    return counts;
  }
  Errors run(Filter& filter) const {
    return run(filter, [](std::size_t) {});
  }

  // A rate that depends on the number of elements since the last sight, averaged over the repeats.
  template <typename Rate>
  double mean_over_gaps(Rate rate) const {
    double sum = 0;
    for (std::size_t i = 0; i < kBins; ++i)
      if (gaps_[i] > 0) sum += gaps_[i] * rate(middle(i));
    return sum / repeats();
  }

 private:
  // Bins of a gap have width one up to kPerOctave; then there are kPerOctave of them per octave.
  static constexpr std::size_t kPerOctave = 32, kBins = 40 * kPerOctave;
  static std::size_t bin(double gap) {
    if (gap < kPerOctave) return static_cast<std::size_t>(gap);
    return static_cast<std::size_t>(kPerOctave * (1 + std::log2(gap / kPerOctave)));
  }
  static double middle(std::size_t bin) {
    if (bin < kPerOctave) return static_cast<double>(bin);
    return std::floor(kPerOctave * std::exp2((static_cast<double>(bin) + 0.5) / kPerOctave - 1));
  }

  std::vector<std::uint32_t> keys_, last_;
  std::vector<double> gaps_ = std::vector<double>(kBins);
  std::uint32_t distinct_ = 0;
};

}  // namespace bench
