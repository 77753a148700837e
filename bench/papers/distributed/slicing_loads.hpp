// Figures 5(b), 5(c), 7(c) and 8: the spread of look-ups over slices, and the slices of a look-up.
#pragma once

#include <algorithm>
#include <set>

#include "bench/papers/distributed/slicing_setting.hpp"

namespace bench::distributed {

struct Spread {
  double fairness;  // (sum x)^2 / (S sum x^2), x: look-ups of a slice
  double most;      // the largest share of the look-ups
};

inline Spread spread_of(const StoredStream& stream, const Parameters& p) {
  std::vector<double> loads(p.slices);
  stream.for_each_row([&](std::size_t, std::uint32_t key, bool) {
    const std::uint64_t hash = hash_word(key, 0);
    for (unsigned i = 0; i < probes(p); ++i) loads[probe_of(p, hash, i).slice] += 1;
  });
  double sum = 0, squares = 0;
  for (const double load : loads) {
    sum += load;
    squares += load * load;
  }
  return {sum * sum / (static_cast<double>(p.slices) * squares),
          *std::max_element(loads.begin(), loads.end()) / sum};
}

struct LoadFiles {
  DataFile& fairness;
  DataFile& load;
};

// `skewed`: a few keys make up much of the stream.
inline void loads(Report& report, const char* figure, const std::string& data,
                  const StoredStream& stream, bool skewed, LoadFiles files) {
  std::vector<Spread> spreads[2];
  for (const Cut cut : {Cut::horizontal, Cut::vertical}) {
    const std::string title = data + ", " + name_of(cut);
    files.fairness.block(title);
    files.load.block(title);
    for (const std::uint32_t slices : kSliceCounts) {
      const Spread spread =
          spread_of(stream, sliced_parameters(cut, slices, static_cast<unsigned>(kHashes)));
      spreads[cut == Cut::vertical].push_back(spread);
      files.fairness.row({static_cast<double>(slices), spread.fairness});
      files.load.row({static_cast<double>(slices), 100 * spread.most});
    }
  }
  bool fairer = true, lighter = true;
  for (std::size_t i = 1; i < kSliceCounts.size(); ++i) {
    fairer &= spreads[1][i].fairness > spreads[0][i].fairness;
    lighter &= spreads[1][i].most < spreads[0][i].most;
  }
  constexpr std::size_t kForty = 3;
  const std::string fairness =
      text("%.3f / %.3f", spreads[0][kForty].fairness, spreads[1][kForty].fairness);
  const std::string most =
      text("%.1f / %.1f %%", 100 * spreads[0][kForty].most, 100 * spreads[1][kForty].most);
  const std::string setting = data + ", 40 slices, h / v";
  if (!skewed) {
    report.line(text("fig. %s: fairness", figure), setting, "", fairness, "");
    report.line(text("fig. %s: most loaded", figure), setting, "", most, "");
    return;
  }
  report.check(fairer, text("fig. %s: fairness", figure), setting, "", fairness,
               "vertical is fairer, from 10 to 1000 slices");
  report.check(lighter, text("fig. %s: most loaded", figure), setting, "", most,
               "vertical has less of it, from 10 to 1000 slices");
}

struct Messages {
  double parallel, pipelined;  // slices that a look-up asks, on average
};

// All probes at once, with a message to each of their slices; or one probe after the other, up to
// the first that answers no. A slice with two probes of a key is asked once.
inline Messages messages_of(Filter& filter, const StoredStream& stream) {
  double all = 0, asked = 0;
  stream.for_each_row([&](std::size_t, std::uint32_t key, bool) {
    const Element element = filter.element(key);
    const Parameters& p = filter.parameters();
    std::set<std::uint32_t> slices;
    bool goes_on = true;
    std::size_t before = 0;
    for (unsigned i = 0; i < probes(p); ++i) {
      const KeyProbe probe = probe_of(p, element.hash, i);
      slices.insert(probe.slice);
      if (goes_on) before = slices.size();
      goes_on = goes_on && test_probe(filter.header(), element, probe);
    }
    all += static_cast<double>(slices.size());
    asked += static_cast<double>(before);
    filter.insert(element);
  });
  return {all / stream.rows(), asked / stream.rows()};
}

inline void figure_7c(Report& report, const Arguments& arguments, std::uint64_t rows) {
  DataFile file(arguments, "distributed-fig7c",
                "slices, all at once, pipelined with 80, 50 and 20 % distinct");
  constexpr double kShares[] = {.8, .5, .2};
  bool as_expected = true, ordered = true;
  std::string at_forty;
  for (const std::uint32_t slices : {2, 5, 10, 20, 40, 100}) {
    double pipelined[3], parallel = 0;
    for (unsigned i = 0; i < 3; ++i) {
      const double distinct = static_cast<double>(rows) * kShares[i];
      const StoredStream stream =
          rows_of(ShuffledList(rows, static_cast<std::uint64_t>(distinct), 5), rows);
      const std::uint64_t body =
          (static_cast<std::uint64_t>(timers_for(kHashes, distinct, .02) / slices) + 511) / 512 *
          64;
      Filter filter(sliced_bloom(slicing_text(Cut::vertical, slices), slices, 4, body));
      const Messages messages = messages_of(filter, stream);
      parallel = messages.parallel;
      pipelined[i] = messages.pipelined;
      const double expected =
          slices * (1 - std::pow(1 - 1. / slices, static_cast<double>(kHashes)));
      // The number of slices of a key varies by less than 1; keys come more than once.
      as_expected &= std::fabs(parallel - expected) < 5 / std::sqrt(distinct);
    }
    ordered &=
        pipelined[0] < pipelined[1] && pipelined[1] < pipelined[2] && pipelined[2] < parallel;
    file.row({static_cast<double>(slices), parallel, pipelined[0], pipelined[1], pipelined[2]});
    if (slices == 40)
      at_forty = text("%.2f: %.2f %.2f %.2f", parallel, pipelined[0], pipelined[1], pipelined[2]);
  }
  report.check(as_expected, "fig. 7(c): slices asked at once", "vertical, 2 to 100 slices", "", "",
               "within 5 s.e. of S (1 - (1 - 1/S)^k)");
  report.check(ordered, "fig. 7(c): pipelining asks fewer", "40 slices; 80, 50, 20 % distinct", "",
               at_forty, "the fewer, the fewer repeats there are");
}

}  // namespace bench::distributed
