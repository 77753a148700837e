// Figures 9-18 and table II of Bhoraskar et al. 2013: false positives and negatives by importance
// on its synthetic streams, weighted rates, and the share of zeros beside the Markov chain.
//
//   make bench
//   build/bench/ibf_figures OUTDIR [--quick]
//
// The setting is that of table III: 16 KB, M = 7, K = 5, P = 10. All rates are of all elements, as
// §IV-B defines them, so a rate of false positives contains the share of new elements. The paper
// does not give the length of its streams; here they have 100,000 elements, and counts are summed
// over several streams, as the paper does over permutations.
//
// The streams of figures 3-8 and table II are traces of YouTube requests, which are not public. Of
// table II only the chain's predictions are compared, and its rates are computed for the synthetic
// streams.
#include "bench/papers/ibf/ibf_chain.hpp"
#include "bench/papers/ibf/ibf_rates.hpp"

int main(int count, char** words) {
  using namespace bench::ibf;
  using bench::text;
  const bench::Arguments arguments = bench::read_arguments(count, words);
  const Scale scale =
      arguments.quick ? Scale{2048, 12500, 1, 12, true} : Scale{16384, 100000, 4, 32, false};
  bench::Report report("Bhoraskar et al. 2013, figures 9-18 and table II");
  const std::vector<Combination> all(kCombinations, kCombinations + kColumns);
  bench::DataFile table(arguments, "ibf-table2",
                        "frequency(0 equal 1 inverse 2 proportional) repeats filter FP FN wFP wFN");
  std::uint64_t exceptions = 0, differences = 0;
  for (const Case& c : kCases)
    for (const double repeats : kRepeats) {
      const Outcome outcome = run(all, scale, c.frequency, repeats);
      exceptions += outcome.exceptions;
      differences += outcome.differences;
      for (unsigned column = 0; column < kColumns; ++column) {
        const ErrorCounts& t = outcome.errors[column];
        table.row({double(unsigned(c.frequency)), repeats, double(column),
                   100 * rate(outcome, t.positives), 100 * rate(outcome, t.negatives),
                   100 * weighted_rate(outcome, t.positives),
                   100 * weighted_rate(outcome, t.negatives)});
      }
      if (repeats != kPlotted) continue;
      write_figures(arguments, c, outcome);
      judge(report, c, outcome);
      compare_at_equal_positives(report, c, outcome, scale);
    }
  report.check(exceptions == 0, "repeats to IBF, not to SBF", "2C, MC; same P, all streams", "",
               text("%llu", static_cast<unsigned long long>(exceptions)),
               "none: at equal P its FN cannot be below SBF's");
  report.check(differences == 0, "table IV: M-insert + random is SBF", "all streams", "",
               text("%llu", static_cast<unsigned long long>(differences)), "no answer differs");
  stable_points(report, arguments, scale);
  printed_table_two(report);
  return report.end();
}
