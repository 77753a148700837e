// Figures 1, 5, 7 and 8 of Koloniari et al. 2011: sliced Bloom filters, their false positives,
// the loads of slices, and what lost slices cost.
//
//   make bench
//   build/bench/slicing_figures OUTDIR [--quick]
//
// In place of the paper's web log, as in distributed_figures: 100,000 events of a Zipf distribution
// with its number of distinct keys; in place of the Yahoo flows, the first 100,000 rows of two
// traces (none where they are absent). The synthetic streams have 5700 distinct keys.
#include <memory>

#include "bench/papers/distributed/slicing_failures.hpp"
#include "bench/papers/distributed/slicing_loads.hpp"
#include "bench/papers/distributed/slicing_positives.hpp"

namespace {

using namespace bench::distributed;
using bench::DataFile;
using bench::StoredStream;

struct Data {
  std::string name;
  StoredStream stream;
  bool skewed;
};

StoredStream zipf(std::uint64_t events, std::uint64_t distinct) {
  return rows_of(bench::Zipf(universe_for(events, distinct), 1, 1), events);
}

// False positives, fairness and load of some streams; each figure has a plot of each.
void figures(bench::Report& report, const bench::Arguments& arguments, const char* positives,
             const char* fairness, const char* load, const std::vector<Data>& all) {
  const auto file = [&](const char* figure, const char* columns) {
    return std::make_unique<DataFile>(arguments, std::string("distributed-fig") + figure, columns);
  };
  const auto rates = file(positives, "slices, FPR (%), by the formula (%)");
  const auto even = file(fairness, "slices, fairness");
  const auto most = file(load, "slices, look-ups of the most loaded slice (%)");
  for (DataFile* empty : {rates.get(), even.get(), most.get()})
    if (all.empty()) {  // an empty plot says so
      empty->block("the traces are not there");
      for (const double slices : {1, 1000}) empty->row({slices, 1, 1});
    }
  for (const Data& data : all) {
    // Streams with about as many keys have the same false positives.
    const double keys = data.stream.distinct() / all.front().stream.distinct();
    if (&data == &all.front() || keys < .9 || keys > 1.1)
      false_positives(report, positives, data.name, data.stream.distinct(), *rates);
    loads(report, fairness, data.name, data.stream, data.skewed, {*even, *most});
  }
}

}  // namespace

int main(int count, char** words) {
  const bench::Arguments arguments = bench::read_arguments(count, words);
  bench::Report report("Koloniari et al. 2011, figures 1, 5, 7 and 8");
  const std::uint64_t events = arguments.quick ? 20000 : 100000;
  const double probes = arguments.quick ? 20000 : 200000;
  same_decisions(report);
  table_of_slicings(report);
  figure_1a(report, arguments, probes);
  figure_1b(report, arguments);
  figures(report, arguments, "5a", "5b", "5c",
          {{"web log", zipf(events, arguments.quick ? 5000 : 16800), true}});
  figure_5d(report, arguments, probes);
  figures(report, arguments, "7a", "8a", "8c",
          {{"uniform", rows_of(bench::ShuffledList(events, 5700, 3), events), false},
           {"Zipf", zipf(events, 5700), true}});
  std::vector<Data> traces;
  for (const auto& [name, file] :
       {std::pair("kdd99", "kdd99_conn.csv.gz"), std::pair("scarab", "scarab_recs.csv.gz")}) {
    StoredStream stream = rows_of_trace(file, events);
    if (stream.rows() > 0)
      traces.push_back({name, std::move(stream), true});
    else
      report.line("fig. 7(b), 8(b), 8(d)", name, "", "", "skipped: the trace is not there");
  }
  figures(report, arguments, "7b", "8b", "8d", traces);
  figure_7c(report, arguments, events);
  return report.end();
}
