// Compares a filter's estimates for less and more memory with filters of that memory.
//
//   make bench
//   build/bench/tuning [--quick] [NAME]     quick: a tenth as long; NAME: only streams so called
//
// Kind clq, one slice. A lag is the number of different keys since a key's last sight, S the places
// of the filter. Rows of the first half only fill the filters. Repeats of lags up to 4 S count:
// those found, relative to those found with the memory there is, and the share that is missed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/quality/tuning_runs.hpp"

namespace {

using namespace streamfilter;

constexpr std::uint64_t kLines = 1024;

const char* wanted = "";  // part of the names of streams to run

template <typename Stream>
void show(const char* name, const char* options, Stream stream, std::uint64_t rows) {
  if (std::strstr(name, wanted) == nullptr) return;
  bench::TuningRuns runs(options, kLines, stream, rows);
  const Tuning tuning(runs.runs[bench::kMiddle].answers());
  const double now = runs.runs[bench::kMiddle].found;
  for (unsigned i = 0; i < bench::kRuns; ++i) {
    const Tuned tuned = tuning.at(bench::kFactors[i]);
    const double low = std::max(tuned.fnr_low - 2 * tuned.error, 0.0),
                 high = std::min(tuned.fnr_high + 2 * tuned.error, 1.0);
    std::printf("%-26s %6g %8.4f %8.4f   %8.3f %8.3f (%.3f - %.3f)\n", name, bench::kFactors[i],
                runs.runs[i].found / now, tuned.found / now, 100 * runs.fnr(i), 100 * tuned.fnr,
                100 * low, 100 * high);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a stream takes seconds
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 1 + quick) wanted = argv[1 + quick];
  const std::uint64_t rows = quick ? 400000 : 4000000;
  const bench::TuningRuns sizes("fpr=0.01", kLines, bench::Cycle(1), 2);
  const double s = sizes.places();
  const auto keys = [s](double share) { return static_cast<std::uint64_t>(share * s); };
  std::printf("S = %.0f\n%-26s %6s %8s %8s   %8s %8s\n%-26s %6s %8s %8s   %8s %8s\n", s, "", "",
              "hits", "hits", "FNR %", "FNR %", "stream", "memory", "found", "foretold", "true",
              "foretold");
  show("uniform, 0.4 S keys", "fpr=0.01", bench::Uniform(keys(.4), 1), rows);
  show("uniform, S keys", "fpr=0.01", bench::Uniform(keys(1), 1), rows);
  show("uniform, 1.5 S keys", "fpr=0.01", bench::Uniform(keys(1.5), 1), rows);
  show("uniform, 6 S keys", "fpr=0.01", bench::Uniform(keys(6), 1), rows);
  show("zipf 1, 10 S keys", "fpr=0.01", bench::Zipf(keys(10), 1, 1), rows);
  show("zipf 0.7, 10 S keys", "fpr=0.01", bench::Zipf(keys(10), .7, 1), rows);
  show("exponential gaps, 0.2 S", "fpr=0.01", bench::ExponentialGaps(.5, .2 * s, 1), rows);
  show("exponential gaps, S", "fpr=0.01", bench::ExponentialGaps(.5, s, 1), rows);
  show("the same, fpr 10 %", "fpr=0.1", bench::ExponentialGaps(.5, s, 1), rows);
  show("exponential gaps, 4 S", "fpr=0.01", bench::ExponentialGaps(.5, 4 * s, 1), rows);
  show("cycle of 0.4 S keys", "fpr=0.01", bench::Cycle(keys(.4)), rows);
  show("cycle of 0.9 S keys", "fpr=0.01", bench::Cycle(keys(.9)), rows);
  show("cycle of 1.2 S keys", "fpr=0.01", bench::Cycle(keys(1.2)), rows);
  show("cycle of 1.5 S keys", "fpr=0.01", bench::Cycle(keys(1.5)), rows);
  show("cycle of 3 S keys", "fpr=0.01", bench::Cycle(keys(3)), rows);
  show("cycle of 3 S, 1 of 2 near", "fpr=0.01", bench::HalfCycle(keys(3), keys(.1)), rows);
}
