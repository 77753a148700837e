// Table 3 of Dutta et al. 2013: Zipfian streams.
#pragma once

#include "bench/papers/sqf/sqf_setting.hpp"

namespace bench::sqf {

struct PrintedRow {
  double megabytes;
  double fpr[3], fnr[3], microseconds[3];  // SBF, RSBF, SQF
};
struct Part {
  double records, distinct;
  PrintedRow rows[5];
};

inline constexpr Part kTable3[] = {
    {1e9,
     .15,
     {{1, {2.38, 3.72, 1.02}, {4.19, 1.45, 1.03}, {.30, .19, .09}},
      {2, {1.98, 3.00, .83}, {3.75, 1.05, .92}, {.32, .20, .11}},
      {4, {1.29, 2.42, .09}, {2.56, .71, .05}, {.35, .27, .17}},
      {8, {.91, 1.29, .008}, {1.41, .14, .008}, {.40, .31, .20}},
      {16, {.38, .92, .0009}, {.85, .05, .001}, {.42, .36, .15}}}},
    {6.95e8,
     .6,
     {{.5, {4.13, 6.72, 4.29}, {37.41, 25.07, 23.61}, {.46, .19, .13}},
      {1, {3.75, 5.24, 3.16}, {32.81, 21.76, 19.41}, {.49, .24, .15}},
      {2, {2.99, 4.19, .24}, {27.31, 18.48, .89}, {.49, .34, .22}},
      {4, {2.18, 3.74, .05}, {21.56, 15.63, .08}, {.52, .35, .26}},
      {8, {1.03, 2.16, .008}, {17.08, 10.52, .004}, {.57, .39, .30}}}},
};

// The exponent that makes this share of `rows` draws distinct.
inline double exponent_for(std::uint64_t rows, std::uint64_t universe, double share) {
  double low = .3, high = 3;
  for (unsigned round = 0; round < 14; ++round) {
    const double middle = (low + high) / 2;
    Zipf stream(universe, middle, 1);
    SeenKeys truth(universe);
    double distinct = 0;
    for (std::uint64_t row = 0; row < rows; ++row) distinct += !truth.is_repeat(stream.next());
    (distinct > share * static_cast<double>(rows) ? low : high) = middle;
  }
  return low;
}

// The exponent and the universe are not printed: here the universe is ten times the records. SQF
// calls each of its 2^p fingerprints new once at most (r 2, r' 1, k 4 evicts nothing), so
// 1 - 2^p/D is a lower bound of its FPR; the printed figures are below it.
inline void table_3(Report& report, const Arguments& arguments, const Scale& scale) {
  DataFile file(arguments, "sqf-table3",
                "distinct MB, FPR of SBF RSBF SQF, FNR of SBF RSBF SQF (per cent)");
  for (const Part& part : kTable3) {
    const std::uint64_t rows = rows_of(part.records, scale.divisor_zipf), universe = 10 * rows;
    const double exponent = exponent_for(rows, universe, part.distinct);
    for (const PrintedRow& row : part.rows) {
      const std::uint64_t bytes = memory(row.megabytes, scale.divisor_zipf);
      const unsigned p =
          bits_of(static_cast<std::uint64_t>(row.megabytes * 0x1p20) * 4 / scale.divisor_zipf);
      const std::vector<Errors> errors =
          run(std::vector<std::string>{stable_filter(bytes), reservoir_filter(bytes),
                                       quotient_filter(2, 1, 4, p, bytes)},
              Zipf(universe, exponent, 1), rows, universe);
      const double bound = 1 - std::ldexp(1, static_cast<int>(p)) / errors[2].fresh;
      std::vector<double> line{part.distinct, row.megabytes};
      for (const Errors& e : errors) line.push_back(100 * e.fpr());
      for (const Errors& e : errors) line.push_back(100 * e.fnr());
      file.row(line);
      constexpr const char* kNames[] = {"SBF", "RSBF", "SQF"};
      for (unsigned i = 0; i < 3; ++i) {
        const std::string what = text("table 3: FPR, FNR of %s", kNames[i]),
                          at = text("%.0f %% distinct, %g MB, s %.2f", 100 * part.distinct,
                                    row.megabytes, exponent),
                          printed = text("%.4g %6.4g", row.fpr[i], row.fnr[i]),
                          ours = text("%.2f %6.2f", 100 * errors[i].fpr(), 100 * errors[i].fnr());
        if (i < 2)
          report.line(what, at, printed, ours, "NOT REPRODUCED: stream unknown");
        else
          report.check(
              errors[i].fpr() >= bound && row.fpr[i] < 100 * bound, what, at, printed, ours,
              text("no FPR below %.1f is possible; printed one NOT REPRODUCED", 100 * bound));
      }
    }
  }
}

}  // namespace bench::sqf
