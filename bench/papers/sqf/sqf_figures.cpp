// Figures 3-5, table 3 and the query times of Dutta et al. 2013, at a smaller scale: records and
// memory are divided by a power of two, which keeps the thresholds of the quotient filter in place.
//
//   make bench
//   build/bench/sqf_figures OUTDIR [--quick]
//
// As for table 2 (sqf_table), the paper's figures come from keys that are their own fingerprints:
// the streams are shuffled lists of 0..D-1. SBF is Max 1, K 2, P 4, RSBF is variant 'measured'.
#include "bench/papers/sqf/sqf_parameters.hpp"
#include "bench/papers/sqf/sqf_streams.hpp"
#include "bench/papers/sqf/sqf_times.hpp"
#include "bench/papers/sqf/sqf_zipf.hpp"

int main(int count, char** words) {
  using namespace bench::sqf;
  const bench::Arguments arguments = bench::read_arguments(count, words);
  const Scale scale = arguments.quick ? Scale{4096, 16384, 8192, 6, 50000, {8}}
                                      : Scale{128, 1024, 512, 9, 2000000, {8, 64, 128}};
  bench::Report report("Dutta et al. 2013, figures 3-5, table 3 and query times");
  figure_3a(report, arguments, scale);
  figure_3b(report, arguments, scale);
  figure_3c(report, arguments, scale);
  figure_4(report, arguments, scale, true);
  figure_4(report, arguments, scale, false);
  figure_5(report, arguments, scale);
  table_3(report, arguments, scale);
  query_times(report, arguments, scale);
  return report.end();
}
