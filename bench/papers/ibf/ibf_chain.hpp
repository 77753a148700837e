// Figure 18 of Bhoraskar et al. 2013 and its corollaries: predictions of its Markov chain.
#pragma once

#include "bench/lib/paper_formulas.hpp"
#include "bench/papers/ibf/ibf_setting.hpp"

namespace bench::ibf {

struct Sample {
  double sum = 0, squares = 0, n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt((squares / n - mean() * mean()) / (n - 1)); }
};

// The mean of replicas is within 5 standard errors of the chain. A deviate of Student's t exceeds
// that with a probability of 2e-5 for 32 replicas, 4e-4 for 12.
inline void against_chain(Report& report, const std::string& what, const char* setting,
                          const Sample& sample, double chain) {
  const double off = (sample.mean() - chain) / sample.error();
  report.check(std::fabs(off) <= 5, what, setting, "", text("%.5f", sample.mean()),
               text("chain %.5f, %+.1f s.e.", chain, off));
}

// Figure 18 and the corollaries on streams of distinct keys of equally frequent importances.
inline void stable_points(Report& report, const Arguments& arguments, const Scale& scale) {
  const std::uint64_t rows = 6 * scale.bytes * 8 / 3;  // 60 decrements and 30 sets of a cell
  const std::uint64_t points = 60, gap = rows / 16;
  constexpr unsigned kProbes = 1000, kLevels[] = {1, 4, 7};
  std::vector<std::vector<double>> zeros(points + 1, std::vector<double>(kColumns, 1));
  for (unsigned c = 0; c < kColumns; ++c) {
    const Column column = static_cast<Column>(c);
    const Combination& combination = kCombinations[c];
    Sample empty, positive, forgotten[3];
    double m = 0;
    for (std::uint64_t seed = 1; seed <= scale.replicas; ++seed) {
      Filter filter(definition(combination.definition, scale, seed));
      ImportanceStream stream(rows, 0, Frequency::equal, seed);
      std::vector<std::uint64_t> keys(rows);
      for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t key = keys[row] = stream.next();
        filter.insert(filter.element(key, importance_for(combination, stream.importance(key))));
        if (seed == 1 && (row + 1) % (rows / points) == 0)
          zeros[(row + 1) / (rows / points)][c] = filter.zeros();
      }
      m = std::floor(static_cast<double>(scale.bytes) * 8 / (column == bf ? 1 : 3));
      empty.add(filter.zeros());
      double hits = 0;
      for (std::uint64_t probe = 0; probe < kProbes; ++probe)
        hits += filter.test(filter.element(~probe));
      positive.add(hits / kProbes);
      if (column != multi) continue;
      // Tests keys around `gap` elements back, each at its own distance, against the chain's value
      // there.
      for (unsigned l = 0; l < 3; ++l) {
        double missed = 0, n = 0;
        for (std::uint64_t back = gap - 500; back < gap + 500; ++back) {
          const std::uint64_t key = keys[rows - 1 - back];
          if (1 + part_of(stream.importance(key), kM) != kLevels[l]) continue;
          missed += !filter.test(filter.element(key));
          ++n;
        }
        forgotten[l].add(missed / n);
      }
    }
    const char* name = combination.name;
    if (column == bf) {
      report.line("fig. 18: BF fills up", "share of zeros at the end", "0",
                  text("%.5f", empty.mean()), "it goes to 0");
      continue;
    }
    const ImportanceStream equal(rows, 0, Frequency::equal, 1);
    const importance_model::Setting setting{kK, kP, m, deletion_of(column)};
    const importance_model::Levels levels = levels_of(column, equal);
    against_chain(report, "fig. 18: share of zeros", name, empty, bench::zeros(levels, setting));
    against_chain(report, "cor. III.4/8: FPR limit", name, positive, fpr_limit(levels, setting));
    const double limit = fpr_limit(levels, setting);
    if (column == two || column == multi)
      report.line("sec. IV-A: bound of the FPR", name, "20 %", percent(limit),
                  limit <= .2 ? "reproduced" : "NOT REPRODUCED: the chain's limit is higher");
    for (unsigned l = 0; column == multi && l < 3; ++l)
      against_chain(report, text("sec. III-A: FNR after %.0f elements", double(gap)),
                    text("%s, level %u", name, kLevels[l]).c_str(), forgotten[l],
                    importance_model::fnr(kLevels[l], static_cast<double>(gap), levels, setting));
  }
  DataFile file(arguments, "ibf-fig18",
                "elements BF SBF IBF-2C IBF-MC IBF-H, then the chain's limits of the last 4");
  const ImportanceStream equal(rows, 0, Frequency::equal, 1);
  for (std::uint64_t point = 0; point <= points; ++point) {
    std::vector<double> row{static_cast<double>(point * (rows / points))};
    row.insert(row.end(), zeros[point].begin(), zeros[point].begin() + kShown);
    for (const Column column : {sbf, two, multi, h})
      row.push_back(
          bench::zeros(levels_of(column, equal),
                       {kK, kP, static_cast<double>(scale.bytes) * 8 / 3, deletion_of(column)}));
    file.row(row);
  }
}

// Table II: once BF is full, its FP is the share of new elements, and another filter's FP divided
// by it is that filter's FPR.
inline void printed_table_two(Report& report) {
  struct Printed {
    Column column;
    double fp[2];
  };
  constexpr double kBf = 34.81;
  constexpr Printed kPrinted[] = {
      {sbf, {25.83, 26}}, {two, {16.14, 10.16}}, {multi, {5.19, .84}}, {h, {9.08, .12}}};
  const ImportanceStream equal(1, 0, Frequency::equal, 1);
  for (const Printed& printed : kPrinted)
    for (unsigned set = 0; set < 2; ++set) {
      // In dataset 2 all importances are equally frequent; in dataset 1 SBF alone knows none.
      if (set == 0 && printed.column != sbf) continue;
      const double limit =
          fpr_limit(levels_of(printed.column, equal), {kK, kP, 43690, deletion_of(printed.column)});
      const double ratio = printed.fp[set] / kBf;
      report.line(text("table II: FP of %s / BF's", kCombinations[printed.column].name),
                  text("YouTube %u; ours: chain's limit", set + 1), text("%.3f", ratio),
                  text("%.3f", limit),
                  std::fabs(ratio - limit) < .01 ? "agrees: SBF at its limit, BF full"
                                                 : "not explained by the chain");
    }
}

}  // namespace bench::ibf
