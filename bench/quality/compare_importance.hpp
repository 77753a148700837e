// Keys of different importance: the kinds made for them, and auto, which ignores importance, with
// the same memory and false positives. An error counts by the importance of its key, as in
// Bhoraskar et al. 2013.
#pragma once

#include <cmath>
#include <cstdio>

#include "bench/lib/figures.hpp"
#include "bench/lib/importance_streams.hpp"
#include "bench/lib/streams.hpp"

namespace bench {

struct WeightedErrors {
  double all = 0, positives = 0, negatives = 0;  // sums of importances
  Errors plain;
};

inline WeightedErrors run_weighted(const std::string& definition, std::uint64_t rows,
                                   Frequency frequency) {
  ImportanceStream stream(rows, 0.5, frequency, 1);
  SeenKeys seen(stream.universe());
  Filter filter(definition);
  WeightedErrors sum;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t key = stream.next();
    const double importance = ImportanceStream::importance(key);
    const bool repeat = seen.is_repeat(key),
               reported = filter.insert(filter.element(key, importance));
    sum.plain.count(repeat, reported);
    sum.all += importance;
    sum.positives += reported && !repeat ? importance : 0;
    sum.negatives += repeat && !reported ? importance : 0;
  }
  return sum;
}

inline void compare_importance(bool quick) {
  const std::uint64_t rows = quick ? 10000 : 100000;
  const char* const names[] = {"equal", "inverse", "proportional"};
  std::printf(
      "\nImportances 1 to 50, half of the rows repeats, 8 bits per row: weighted FPR/FNR in per "
      "cent\n"
      "%-13s %-38s %13s %13s\n",
      "frequency", "setting", "", "auto");
  for (const Frequency frequency : {Frequency::equal, Frequency::inverse, Frequency::proportional})
    for (const char* kind : {"ibf2c", "ibfmc"})
      for (const char* options :
           {"fpr=0.01, importance_range='1,50'", "fpr=0.1, importance_range='1,50'",
            "fpr=0.1, k=2, importance_range='1,50'"}) {
        const std::string memory =
            text(", slices=1, memory=%llu)", static_cast<unsigned long long>(memory_for(rows)));
        const WeightedErrors its =
            run_weighted(std::string(kind) + "(" + options + memory, rows, frequency);
        const double asked = std::fmax(its.plain.fpr(), 1 / its.plain.fresh);
        const WeightedErrors ours =
            run_weighted(text("auto(fpr=%.9g", asked) + memory, rows, frequency);
        std::printf("%-13s %-38.38s %6.3f/%6.3f %6.3f/%6.3f\n",
                    names[static_cast<unsigned>(frequency)],
                    (std::string(kind) + " " + options).c_str(), 100 * its.positives / its.all,
                    100 * its.negatives / its.all, 100 * ours.positives / ours.all,
                    100 * ours.negatives / ours.all);
      }
}

}  // namespace bench
