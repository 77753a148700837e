// Figures 4 and 5 of Dutta et al. 2013: errors over the length of the stream, and the memory needed
// for given rates.
#pragma once

#include <algorithm>

#include "bench/papers/sqf/sqf_setting.hpp"

namespace bench::sqf {

// ---- figure 4: the length of the stream

struct Length {
  double records;
  double printed[2];  // SBF, RSBF; 0: not printed
};

// Figure 4 has no numbers; table 2 here, and tables 4-8 of Bera et al. 2012, have them for the same
// streams and memory.
inline void figure_4(Report& report, const Arguments& arguments, const Scale& scale,
                     bool positives) {
  constexpr Length kPositives[] = {
      {1e8, {}}, {2.5e8, {}}, {5e8, {}}, {6.95e8, {2.0861, 2.7654}}, {1e9, {3.1629, 4.5557}}};
  constexpr Length kNegatives[] = {
      {1e8, {}}, {2.5e8, {}}, {5e8, {}}, {6.95e8, {53.2681, 35.9014}}, {1e9, {60.8981, 43.1705}}};
  const char* figure = positives ? "fig. 4a: FPR" : "fig. 4b: FNR";
  const std::string setting = positives ? "60 % distinct, 256 MB" : "15 % distinct, 64 MB";
  const std::uint64_t bytes = memory(positives ? 256 : 64, scale.divisor);
  DataFile file(arguments, positives ? "sqf-fig4a" : "sqf-fig4b",
                "records SBF RSBF SQF (per cent)");
  double last[2] = {};
  bool rises = true;
  for (const Length& length : positives ? kPositives : kNegatives) {
    const std::uint64_t rows = rows_of(length.records, scale.divisor);
    const std::uint64_t d = distinct_of(rows, positives ? .6 : .15);
    const std::vector<Errors> errors = run_list({stable_filter(bytes), reservoir_filter(bytes),
                                                 quotient_filter(2, 1, 4, bits_of(d), bytes)},
                                                rows, d);
    const auto rate = [&](unsigned i) { return positives ? errors[i].fpr() : errors[i].fnr(); };
    file.row({length.records, 100 * rate(0), 100 * rate(1), 100 * rate(2)});
    const std::string at = text("%.0f M, %s", length.records / 1e6, setting.c_str());
    for (unsigned i = 0; i < 2; ++i) {
      rises &= rate(i) > last[i];
      last[i] = rate(i);
      if (length.printed[i] == 0) continue;
      const double printed = length.printed[i] / 100;
      const double n = positives ? errors[i].fresh : errors[i].repeats;
      report.check(std::fabs(rate(i) - printed) <= std::max(.03 * printed, four_errors(printed, n)),
                   text("%s of %s", figure, i == 0 ? "SBF" : "RSBF"), at, percent(printed),
                   percent(rate(i)), "within 3 % or 4 s.e.");
    }
    report.check(errors[2].positives + errors[2].negatives == 0, text("%s of SQF", figure), at,
                 "near 0", percent(rate(2)), "exactly 0");
  }
  report.check(rises, text("%s of SBF and RSBF rises", figure), "100 M to 1000 M", "rises",
               rises ? "rises" : "does not", "at every step");
  if (!positives)
    report.check(last[0] > .4 && last[1] > .4, "fig. 4b: FNR of SBF and RSBF", "at 1000 M",
                 "> 40 %", percent(std::min(last[0], last[1])), "above");
}

// ---- figure 5: the memory for FPR 2 % or FNR 10 %, 695 million records

inline constexpr double kThresholds[] = {.02, .1};

inline bool is_enough(const Errors& errors, unsigned threshold) {
  return (threshold == 0 ? errors.fpr() : errors.fnr()) <= kThresholds[threshold];
}

// The megabytes that suffice, by bisection of their logarithm.
inline double memory_needed(std::string (*definition)(std::uint64_t), unsigned threshold,
                            std::uint64_t rows, std::uint64_t distinct, const Scale& scale) {
  double low = 3, high = 12;
  for (unsigned round = 0; round < scale.rounds; ++round) {
    const double middle = (low + high) / 2;
    const Errors errors =
        run_list({definition(memory(std::exp2(middle), scale.divisor_memory))}, rows, distinct)[0];
    (is_enough(errors, threshold) ? high : low) = middle;
  }
  return std::exp2(high);
}

// The paper's setting (2, 1, 4) is exact if 2^p fingerprints fit, at two bits each. With half of
// that memory, its table 2 continues with (4, 2, 4). (In this library such rows are bitmaps of one
// bit each, so (2, 1, 4) is exact in half of that memory, too.)
inline double memory_of_quotient(std::uint64_t rows, std::uint64_t distinct, const Scale& scale,
                                 bool& is_least) {
  const unsigned p = bits_of(distinct);
  const double megabytes =
      std::ldexp(1, static_cast<int>(p) - 22) * static_cast<double>(scale.divisor_memory);
  const std::vector<Errors> errors =
      run_list({quotient_filter(2, 1, 4, p, memory(megabytes, scale.divisor_memory)),
                quotient_filter(4, 2, 4, p, memory(megabytes / 2, scale.divisor_memory)),
                quotient_filter(2, 1, 4, p, memory(megabytes / 2, scale.divisor_memory) + 64)},
               rows, distinct);
  is_least = is_enough(errors[0], 0) && is_enough(errors[0], 1) && !is_enough(errors[1], 0) &&
             !is_enough(errors[1], 1) && errors[2].positives + errors[2].negatives == 0;
  return megabytes;
}

inline void figure_5(Report& report, const Arguments& arguments, const Scale& scale) {
  DataFile a(arguments, "sqf-fig5a", "distinct_per_cent SBF RSBF SQF (MB for FPR 2 %)");
  DataFile b(arguments, "sqf-fig5b", "distinct_per_cent SBF RSBF SQF (MB for FNR 10 %)");
  const std::uint64_t rows = rows_of(6.95e8, scale.divisor_memory);
  for (const unsigned share : {15, 30, 45, 60, 75, 90}) {
    const std::uint64_t d = distinct_of(rows, share / 100.);
    bool is_least;
    const double quotients = memory_of_quotient(rows, d, scale, is_least);
    double others[2][2];
    for (unsigned threshold = 0; threshold < 2; ++threshold) {
      others[threshold][0] = memory_needed(stable_filter, threshold, rows, d, scale);
      others[threshold][1] = memory_needed(reservoir_filter, threshold, rows, d, scale);
      (threshold == 0 ? a : b)
          .row({double(share), others[threshold][0], others[threshold][1], quotients});
    }
    const std::string at = text("%u %% distinct", share);
    report.check(is_least, "fig. 5: MB of SQF, r 2 r' 1 k 4", at,
                 share == 30   ? "50, 75"
                 : share == 90 ? "250"
                               : "",
                 text("%.0f", quotients), "enough; half is not for (4,2,4), is as bitmaps");
    for (unsigned threshold = 0; threshold < 2; ++threshold) {
      const double sbf = others[threshold][0], rsbf = others[threshold][1];
      const std::string what =
          threshold == 0 ? "fig. 5a: MB of SBF, RSBF" : "fig. 5b: MB of SBF, RSBF";
      const std::string ours = text("%.0f, %.0f", sbf, rsbf);
      if (share == 30)
        report.check(std::min(sbf, rsbf) > (threshold == 0 ? 100 : 400), what, at,
                     threshold == 0 ? "> 100" : "> 400", ours, "above");
      else if (share == 90 && threshold == 0)
        report.line(what, at, "about 450", ours, "a reading of the chart, not asserted");
      else
        report.line(what, at, "", ours, "");
    }
  }
}

}  // namespace bench::sqf
