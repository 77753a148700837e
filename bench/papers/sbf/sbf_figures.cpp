// Figures 1-6 of Deng, Rafiei 2006.
//
//   build/bench/sbf_figures OUTDIR [--quick]
#include "bench/papers/sbf/sbf_formulas.hpp"
#include "bench/papers/sbf/sbf_streams.hpp"
#include "bench/papers/sbf/sbf_synthetic.hpp"

int main(int count, char** words) {
  const bench::Arguments arguments = bench::read_arguments(count, words);
  bench::ModelReport report("Deng, Rafiei 2006, figures 1-6; rates in %");
  bench::figure_1(arguments, report);
  bench::figure_2(arguments, report);
  bench::figures_3_to_5(arguments, report);
  bench::figure_6(arguments, report);
  return report.end();
}
