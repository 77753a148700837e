// The query times of Dutta et al. 2013.
#pragma once

#include <algorithm>
#include <chrono>

#include "bench/papers/sqf/sqf_setting.hpp"

namespace bench::sqf {

// Nanoseconds per insertion of uniform keys, after as many untimed ones.
inline double nanoseconds(const std::string& definition, std::uint64_t elements,
                          std::uint64_t universe) {
  Filter filter(definition);
  Uniform stream(universe, 7);
  std::chrono::steady_clock::time_point start;
  double reported = 0;
  for (std::uint64_t i = 0; i < 2 * elements; ++i) {
    if (i == elements) start = std::chrono::steady_clock::now();
    reported += filter.insert(filter.element(stream.next()));
  }
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
  return reported < 0 ? 0 : taken.count() / static_cast<double>(elements);
}

// Filters have the printed size, unscaled, so that caches matter as they did.
inline void query_times(Report& report, const Arguments& arguments, const Scale& scale) {
  struct Printed {
    unsigned megabytes;
    double sbf, rsbf, sqf;
  };
  constexpr Printed kPrinted[] = {// table 2, 1 billion records
                                  {8, 1.07, .80, .76},
                                  {64, 1.08, .83, .79},
                                  {128, 1.10, .86, .81}};
  DataFile file(arguments, "sqf-times",
                "MB, time / SQF's of SBF RSBF RLBSBF DSQF, printed of SBF RSBF");
  for (const Printed& printed : kPrinted) {
    if (std::find(scale.megabytes.begin(), scale.megabytes.end(), printed.megabytes) ==
        scale.megabytes.end())
      continue;
    const std::uint64_t bytes = memory(printed.megabytes, 1);
    const unsigned p = bits_of(std::uint64_t{printed.megabytes} << 22);
    const std::string definitions[] = {quotient_filter(2, 1, 4, p, bytes), stable_filter(bytes),
                                       reservoir_filter(bytes),
                                       text("rlbsbf(slices=1, k=2, memory=%llu)", Wide(bytes)),
                                       text("dsqf(slices=1, fpr=0.01, memory=%llu)", Wide(bytes))};
    constexpr const char* kNames[] = {"SQF", "SBF", "RSBF", "RLBSBF", "DSQF"};
    const double ratios[] = {1, printed.sbf / printed.sqf, printed.rsbf / printed.sqf, 0, 0};
    const double microseconds[] = {printed.sqf, printed.sbf, printed.rsbf, 0, 0};
    double own[5];
    for (unsigned i = 0; i < 5; ++i) {
      own[i] = nanoseconds(definitions[i], scale.timed, 150000000);
      report.line(text("time of %s / SQF's", kNames[i]),
                  ratios[i] > 0 ? text("%u MB; printed %.2f us", printed.megabytes, microseconds[i])
                                : text("%u MB", printed.megabytes),
                  ratios[i] > 0 ? text("%.2f", ratios[i]) : "", text("%.2f", own[i] / own[0]),
                  "not asserted");
    }
    file.row({double(printed.megabytes), own[1] / own[0], own[2] / own[0], own[3] / own[0],
              own[4] / own[0], ratios[1], ratios[2]});
  }
}

}  // namespace bench::sqf
