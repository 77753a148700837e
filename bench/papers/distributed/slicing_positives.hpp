// Figures 5(a), 7(a) and 7(b): false positives by the number of slices.
#pragma once

#include "bench/papers/distributed/slicing_setting.hpp"

namespace bench::distributed {

struct Mean {
  double value, error;  // the standard error of `value`
};

// Only new keys can be false positives, and only they change a Bloom filter: the number of distinct
// keys is all that matters of a stream. Runs differ in the hash.
inline Mean positives(Cut cut, std::uint32_t slices, std::uint64_t cells_of_slice, double keys,
                      unsigned runs) {
  const Parameters p = sliced_parameters(cut, slices, static_cast<unsigned>(kHashes));
  double sum = 0, squares = 0;
  for (unsigned run = 0; run < runs; ++run) {
    Cells cells(p, static_cast<unsigned>(kHashes), cells_of_slice);
    double found = 0;
    for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(keys); ++key)
      found += cells.insert(hash_word(key, run));
    sum += found / keys;
    squares += found * found / (keys * keys);
  }
  const double mean = sum / runs;
  return {mean, std::sqrt(std::max(0.0, squares / runs - mean * mean) / (runs - 1))};
}

inline std::uint64_t cells_of_slice(double keys, double target, std::uint32_t slices) {
  return static_cast<std::uint64_t>(
      std::llround(timers_for(kHashes, keys, target) / static_cast<double>(slices)));
}

// One line of a plot; returns the measured rates.
inline std::vector<double> positives_of(Report& report, DataFile& file, const char* figure,
                                        const std::string& data, double keys, double target,
                                        Cut cut, unsigned runs) {
  std::vector<double> rates;
  file.block(text("%s, FPR %g, %s", data.c_str(), target, name_of(cut)));
  double worst = 0;
  for (const std::uint32_t slices : kSliceCounts) {
    const std::uint64_t cells = cells_of_slice(keys, target, slices);
    const Mean mean = positives(cut, slices, cells, keys, runs);
    const double m = static_cast<double>(cells);
    const slicing_model::SlicingShape shape =
        cut == Cut::vertical
            ? slicing_model::SlicingShape{kHashes, 1, 1, static_cast<double>(slices), m}
            : slicing_model::SlicingShape{1, kHashes, static_cast<double>(slices), 1, m};
    const double expected = mean_rate(shape, keys);
    worst = std::max(worst, std::fabs(mean.value - expected) / mean.error);
    file.row({static_cast<double>(slices), 100 * mean.value, 100 * expected});
    rates.push_back(mean.value);
  }
  report.check(worst <= 5, text("fig. %s: FPR by slices", figure),
               text("%s, FPR %g, %s", data.c_str(), target, name_of(cut)), "",
               text("%.3f..%.3f %%", 100 * rates.front(), 100 * rates.back()),
               text("within 5 s.e. of Eq. %s (%.1f)",
                    cut == Cut::vertical ? "3" : "4, with both spreads", worst));
  return rates;
}

inline void false_positives(Report& report, const char* figure, const std::string& data,
                            double keys, DataFile& file) {
  constexpr unsigned kRuns = 24;
  for (const double target : kTargets) {
    const auto horizontal =
                   positives_of(report, file, figure, data, keys, target, Cut::horizontal, kRuns),
               vertical =
                   positives_of(report, file, figure, data, keys, target, Cut::vertical, kRuns);
    report.check(horizontal.back() > 1.05 * vertical.back(), text("fig. %s: uneven slices", figure),
                 text("%s, FPR %g, 1000 slices", data.c_str(), target), "",
                 text("x %.2f", horizontal.back() / vertical.back()),
                 "horizontal is above vertical");
  }
}

// Every slicing at one size: tests new keys on filters that hold the keys they are sized for.
inline void table_of_slicings(Report& report) {
  constexpr unsigned kBitsOfKey = 6, kRuns = 24, kProbes = 20000;
  constexpr std::uint64_t kBody = 64;
  const auto keys = static_cast<std::uint64_t>(40 * kBody * 8 / timers_for(kBitsOfKey, 1, .02));
  for (const char* slicing :
       {"40", "40, slicing=vertical", "'8,5', slicing=diced", "'8,5', slicing=diced, dice=vh",
        "40, k1=2, k2=3", "40, k1=3, k2=2"}) {
    double sum = 0, squares = 0, asked = 0, expected = 0;
    for (unsigned run = 0; run < kRuns; ++run) {
      Filter filter(sliced_bloom(slicing, 40, kBitsOfKey, kBody));
      const Parameters& p = filter.parameters();
      expected = slicing_model::rate(slicing_model::shape_of(p, kBitsOfKey, kBody * 8),
                                     static_cast<double>(keys));
      for (std::uint64_t key = 0; key < keys; ++key) filter.insert({hash_word(key, run), 0, 0});
      double found = 0;
      for (std::uint64_t key = keys; key < keys + kProbes; ++key) {
        const Element element = {hash_word(key, run), 0, 0};
        unsigned probe = 0;
        while (probe < probes(p) &&
               test_probe(filter.header(), element, probe_of(p, element.hash, probe)))
          ++probe;
        found += probe == probes(p);
        asked += std::min(probe + 1, probes(p));
      }
      sum += found / kProbes;
      squares += found * found / kProbes / kProbes;
    }
    const double mean = sum / kRuns,
                 error = std::sqrt((squares / kRuns - mean * mean) / (kRuns - 1));
    report.check(std::fabs(mean - expected) <= 5 * error, "FPR; slices asked by a new key",
                 text("slices=%s", slicing), percent(expected),
                 text("%s %.2f", percent(mean).c_str(), asked / kRuns / kProbes),
                 "within 5 s.e. of the formula");
  }
}

// The cells of these figures give the answers of kind bloom.
inline void same_decisions(Report& report) {
  unsigned differences = 0;
  for (const Cut cut : {Cut::horizontal, Cut::vertical}) {
    constexpr std::uint32_t kParts = 40;
    constexpr std::uint64_t kBody = 128;
    Filter filter(sliced_bloom(slicing_text(cut, kParts), kParts, 4, kBody));
    Cells cells(filter.parameters(), 4, kBody * 8);
    for (std::uint64_t key = 0; key < 10000; ++key)
      differences += cells.insert(hash_word(key, 0)) != filter.insert({hash_word(key, 0), 0, 0});
  }
  report.check(differences == 0, "cells and kind bloom", "40 slices of 1024 bits, 10000 keys", "",
               text("%u", differences), "no decision differs");
}

}  // namespace bench::distributed
