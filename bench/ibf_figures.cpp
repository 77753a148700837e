// Figures 9-18 and table II of ibf.txt: false positives and negatives by importance on its
// synthetic streams, weighted rates, and the share of zeros beside the Markov chain.
//
//   make bench
//   build/bench/ibf_figures OUTDIR [--quick]
//
// The setting is that of table III: 16 KB, M = 7, K = 5, P = 10. All rates are of all elements, as
// §IV-B defines them, so a rate of false positives contains the share of new elements. The paper
// does not give the length of its streams; here they have 100,000 elements, and counts are summed
// over several streams, as the paper does over permutations.
//
// The streams of figures 3-8 and table II are traces of YouTube requests, which are not here: of
// table II only what the chain says is compared, and its rates are computed for the synthetic
// streams.
#include <algorithm>
#include <array>
#include <limits>

#include "figures.hpp"
#include "importance_streams.hpp"
#include "streamfilter/core/ibf_model.hpp"
#include "streamfilter/core/sbf_model.hpp"

namespace {

using namespace streamfilter;
using bench::Frequency;
using bench::kImportances;
using bench::percent;
using bench::text;

constexpr unsigned kM = 7;
constexpr double kK = 5, kP = 10;
constexpr unsigned kHigh = 36;  // §IV-E speaks of importances above 35

// Table IV: ways to insert and to delete. Elements of M-insert count as most important ones.
struct Combination {
  const char* name;
  const char* definition;
  bool most_important;
};

enum Column : unsigned { bf, sbf, two, multi, h, two_value, m_value, m_random, kColumns };

constexpr Combination kCombinations[kColumns] = {
    {"BF", "bloom(k=5", false},
    {"SBF", "sbf(max=7, cell_bits=3, k=5, p=10", false},
    {"IBF-2C", "ibf2c(max=7, k=5, p=10, importance_range='1,51'", false},
    {"IBF-MC", "ibfmc(max=7, k=5, p=10, importance_range='1,51'", false},
    {"IBF-H", "ibfh(max=7, k=5, p=10, importance_range='1,51'", false},
    {"M/2-insert, value", "ibf2c(max=7, k=5, p=10, delete=value, importance_range='1,51'", false},
    {"M-insert, value", "ibfmc(max=7, k=5, p=10, delete=value", true},
    {"M-insert, random", "ibfmc(max=7, k=5, p=10", true},
};
constexpr unsigned kShown = 5;  // the paper's own

struct Scale {
  std::uint64_t bytes, rows;
  unsigned permutations, replicas;
  bool is_small;  // gains of one or two points are not told from chance
};

std::string definition(const char* start, const Scale& scale, std::uint64_t seed) {
  return text("%s, slices=1, memory=%llu, seed=%llu)", start,
              static_cast<unsigned long long>(bench::memory_for(scale.bytes)),
              static_cast<unsigned long long>(seed));
}

double importance_for(const Combination& combination, unsigned importance) {
  return combination.most_important ? std::numeric_limits<double>::infinity() : importance;
}

// The level that importance_range '1,51' gives importance i in `parts` equal parts.
unsigned part_of(unsigned i, unsigned parts) { return (i - 1) * parts / kImportances; }

// How levels are distributed on a stream.
ibf_model::Levels levels_of(Column column, const bench::ImportanceStream& stream) {
  if (column == sbf || column == m_value || column == m_random)
    return ibf_model::most_important(kM);
  ibf_model::Levels levels{kM, {}};
  for (unsigned i = 1; i <= kImportances; ++i) {
    const unsigned level = column == two || column == two_value ? (part_of(i, 2) > 0 ? kM : kM / 2)
                                                                : 1 + part_of(i, kM);
    levels.share[level] += stream.share(i);
  }
  return levels;
}

ibf_model::Deletion deletion_of(Column column) {
  return column == h || column == two_value || column == m_value ? ibf_model::Deletion::value
                                                                 : ibf_model::Deletion::random;
}

// ---- the synthetic streams

using PerImportance = std::array<double, kImportances + 1>;

struct Tally {
  PerImportance positives{}, negatives{};
};

struct Outcome {
  PerImportance rows{}, fresh{};
  std::vector<Tally> tally;
  // Errors that contradict that the cells of SBF are never below those of IBF.
  std::uint64_t exceptions = 0, differences = 0;
};

double sum(const PerImportance& counts, unsigned from = 1, unsigned to = kImportances,
           bool weighted = false) {
  double total = 0;
  for (unsigned i = from; i <= to; ++i) total += counts[i] * (weighted ? i : 1);
  return total;
}

double rate(const Outcome& outcome, const PerImportance& errors, unsigned from = 1,
            unsigned to = kImportances) {
  return sum(errors, from, to) / sum(outcome.rows, from, to);
}

// §IV-B, the definition that streamfilter_evaluate follows.
double weighted_rate(const Outcome& outcome, const PerImportance& errors) {
  return sum(errors, 1, kImportances, true) / sum(outcome.rows, 1, kImportances, true);
}

Outcome run(const std::vector<Combination>& combinations, const Scale& scale, Frequency frequency,
            double repeats) {
  Outcome outcome;
  outcome.tally.resize(combinations.size());
  for (std::uint64_t seed = 1; seed <= scale.permutations; ++seed) {
    bench::ImportanceStream stream(scale.rows, repeats, frequency, seed);
    bench::SeenKeys truth(stream.universe());
    std::vector<bench::Filter> filters;
    for (const Combination& c : combinations)
      filters.emplace_back(definition(c.definition, scale, seed));
    std::vector<char> seen(filters.size());
    for (std::uint64_t row = 0; row < scale.rows; ++row) {
      const std::uint64_t key = stream.next();
      const unsigned i = stream.importance(key);
      const bool repeat = truth.is_repeat(key);
      ++outcome.rows[i];
      outcome.fresh[i] += !repeat;
      for (std::size_t c = 0; c < filters.size(); ++c) {
        seen[c] = filters[c].insert(filters[c].element(key, importance_for(combinations[c], i)));
        outcome.tally[c].positives[i] += seen[c] && !repeat;
        outcome.tally[c].negatives[i] += !seen[c] && repeat;
      }
      if (filters.size() != kColumns) continue;
      outcome.exceptions += (seen[two] && !seen[sbf]) || (seen[multi] && !seen[sbf]);
      outcome.differences += seen[m_random] != seen[sbf];
    }
  }
  return outcome;
}

struct Case {
  Frequency frequency;
  const char* name;
  unsigned distribution, positives, negatives;  // figures
};
constexpr Case kCases[] = {{Frequency::equal, "equal", 9, 10, 11},
                           {Frequency::inverse, "inverse", 12, 13, 14},
                           {Frequency::proportional, "proportional", 15, 16, 17}};
constexpr double kRepeats[] = {.1, .3, .5};
constexpr double kPlotted = .3;

void write_figures(const bench::Arguments& arguments, const Case& c, const Outcome& outcome) {
  const auto name = [](unsigned figure) { return text("ibf-fig%u", figure); };
  const std::string columns = "importance BF SBF IBF-2C IBF-MC IBF-H (per cent)";
  bench::DataFile distribution(arguments, name(c.distribution), "importance per_cent new_per_cent");
  bench::DataFile positives(arguments, name(c.positives), columns);
  bench::DataFile negatives(arguments, name(c.negatives), columns);
  for (unsigned i = 1; i <= kImportances; ++i) {
    const double share = 100 / outcome.rows[i], all = sum(outcome.rows);
    distribution.row({double(i), 100 * outcome.rows[i] / all, 100 * outcome.fresh[i] / all});
    std::vector<double> p{double(i)}, n{double(i)};
    for (unsigned column = 0; column < kShown; ++column) {
      p.push_back(share * outcome.tally[column].positives[i]);
      n.push_back(share * outcome.tally[column].negatives[i]);
    }
    positives.row(p);
    negatives.row(n);
  }
}

// By how many standard errors the first range of importances has the higher rate.
double deviations(const Outcome& outcome, const PerImportance& errors, unsigned from_a,
                  unsigned to_a, unsigned from_b, unsigned to_b) {
  const double n_a = sum(outcome.rows, from_a, to_a), n_b = sum(outcome.rows, from_b, to_b);
  const double a = rate(outcome, errors, from_a, to_a), b = rate(outcome, errors, from_b, to_b);
  return (a - b) / std::sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b);
}

// The weighted false negatives that SBF has at a weighted rate of false positives, between two
// settings of P.
double at_equal_positives(const std::vector<std::array<double, 2>>& curve, double positives) {
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const auto [high, low_fn] = curve[i - 1];
    const auto [low, high_fn] = curve[i];
    if (positives <= high && positives >= low)
      return low_fn + (high - positives) / (high - low) * (high_fn - low_fn);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// As many rows of equal weight have a rate of the same standard error.
double effective_rows(const Outcome& outcome) {
  double sum_of_squares = 0;
  for (unsigned i = 1; i <= kImportances; ++i) sum_of_squares += outcome.rows[i] * i * i;
  const double all = sum(outcome.rows, 1, kImportances, true);
  return all * all / sum_of_squares;
}

void compare_at_equal_positives(bench::Report& report, const Case& c, const Outcome& outcome,
                                const Scale& scale) {
  std::vector<Combination> settings;
  std::vector<std::string> definitions;
  for (const unsigned p : {10, 13, 17, 22, 29, 38, 50, 70, 100, 150, 250})
    definitions.push_back(text("sbf(max=7, cell_bits=3, k=5, p=%u", p));
  for (const std::string& setting : definitions)
    settings.push_back({"SBF", setting.c_str(), false});
  const Outcome stable = run(settings, scale, c.frequency, kPlotted);
  std::vector<std::array<double, 2>> curve;
  for (const Tally& tally : stable.tally)
    curve.push_back(
        {weighted_rate(stable, tally.positives), weighted_rate(stable, tally.negatives)});
  for (const Column column : {two, multi, h}) {
    const double positives = weighted_rate(outcome, outcome.tally[column].positives);
    const double own = weighted_rate(outcome, outcome.tally[column].negatives);
    const double gain = at_equal_positives(curve, positives) - own;
    const double off = gain / std::sqrt(2 * own * (1 - own) / effective_rows(outcome));
    const std::string what = text("%s: SBF's wFN less its own", kCombinations[column].name),
                      setting = text("%s, SBF's P for equal wFP", c.name),
                      ours = text("%+.2f pt", 100 * gain);
    if (c.frequency == Frequency::inverse)
      report.line(what, setting, "> 0", ours, text("NOT REPRODUCED as a gain: %+.1f s.e.", off));
    else if (scale.is_small)
      report.line(what, setting, "> 0", ours, text("%+.1f s.e., not asserted at this scale", off));
    else
      report.check(off > 4, what, setting, "> 0", ours, text("%+.1f s.e., above 4", off));
  }
}

void judge(bench::Report& report, const Case& c, const Outcome& outcome) {
  const std::vector<Tally>& tally = outcome.tally;
  for (unsigned column = 0; column < kShown; ++column) {
    const Tally& t = tally[column];
    report.line(text("table II: wFP, wFN of %s", kCombinations[column].name),
                text("%s, %g %% repeats", c.name, 100 * kPlotted), "",
                text("%.2f %5.2f", 100 * weighted_rate(outcome, t.positives),
                     100 * weighted_rate(outcome, t.negatives)),
                "no printed figure for this stream");
  }
  for (const Column column : {two, multi, h}) {
    const char* name = kCombinations[column].name;
    unsigned lower = 0;
    for (unsigned i = 1; i <= kImportances; ++i)
      lower += tally[column].positives[i] < tally[sbf].positives[i];
    report.check(lower >= 45, text("fig. %u: FP below SBF's", c.positives),
                 text("%s, %s, of 50 importances", name, c.name), "almost all", text("%u", lower),
                 "at 45 or more");
    const double negatives =
        rate(outcome, tally[column].negatives, kHigh) - rate(outcome, tally[sbf].negatives, kHigh);
    const double positives =
        rate(outcome, tally[column].positives, kHigh) - rate(outcome, tally[sbf].positives, kHigh);
    const bool printed = c.frequency == Frequency::inverse;
    report.line(text("fig. %u: FP less SBF's", c.positives), text("%s, importance > 35", name),
                printed ? "-8 pt" : "lower", text("%+.2f pt", 100 * positives),
                positives < 0 ? "reproduced in sign" : "NOT REPRODUCED");
    report.line(text("fig. %u: FN less SBF's", c.negatives), text("%s, importance > 35", name),
                printed ? "-4 pt" : "<= 0", text("%+.2f pt", 100 * negatives),
                negatives <= 0 ? "reproduced in sign" : "NOT REPRODUCED");
  }
  const double falls = deviations(outcome, tally[multi].negatives, 1, 8, 44, 50),
               classes = deviations(outcome, tally[two].negatives, 1, 25, 26, 50);
  if (c.frequency == Frequency::equal) {
    report.check(falls > 4, text("fig. %u: FN falls with importance", c.negatives),
                 "IBF-MC, lowest to highest level", "", text("%.1f s.e.", falls), "above 4 s.e.");
    report.check(classes > 4, text("fig. %u: two classes of FN", c.negatives),
                 "IBF-2C, importance <= 25, > 25", "", text("%.1f s.e.", classes), "above 4 s.e.");
  }
  if (c.frequency == Frequency::inverse)
    for (const Column column : {bf, sbf}) {
      const double rises = deviations(outcome, tally[column].positives, 41, 50, 1, 10);
      report.check(rises > 4, text("fig. %u: FP rises with importance", c.positives),
                   text("%s, 1-10 to 41-50", kCombinations[column].name), "",
                   text("%.1f s.e.", rises), "above 4 s.e.");
    }
}

// ---- the chain

struct Sample {
  double sum = 0, squares = 0, n = 0;
  void add(double x) { sum += x, squares += x * x, ++n; }
  double mean() const { return sum / n; }
  double error() const { return std::sqrt((squares / n - mean() * mean()) / (n - 1)); }
};

// The mean of replicas is within 5 standard errors of the chain: a deviate of Student's t, beyond
// which it is with a probability of 2e-5 in 32 replicas, 4e-4 in 12.
void against_chain(bench::Report& report, const std::string& what, const char* setting,
                   const Sample& sample, double chain) {
  const double off = (sample.mean() - chain) / sample.error();
  report.check(std::fabs(off) <= 5, what, setting, "", text("%.5f", sample.mean()),
               text("chain %.5f, %+.1f s.e.", chain, off));
}

// Figure 18 and the corollaries on streams of distinct keys of equally frequent importances.
void stable_points(bench::Report& report, const bench::Arguments& arguments, const Scale& scale) {
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
      bench::Filter filter(definition(combination.definition, scale, seed));
      bench::ImportanceStream stream(rows, 0, Frequency::equal, seed);
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
      // Keys around `gap` elements back, each at its own distance, against the chain's value there.
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
    const bench::ImportanceStream equal(rows, 0, Frequency::equal, 1);
    const ibf_model::Setting setting{kK, kP, m, deletion_of(column)};
    const ibf_model::Levels levels = levels_of(column, equal);
    against_chain(report, "fig. 18: share of zeros", name, empty,
                  ibf_model::zeros(levels, setting));
    against_chain(report, "cor. III.4/8: FPR limit", name, positive,
                  ibf_model::fpr_limit(levels, setting));
    const double limit = ibf_model::fpr_limit(levels, setting);
    if (column == two || column == multi)
      report.line("sec. IV-A: bound of the FPR", name, "20 %", percent(limit),
                  limit <= .2 ? "reproduced" : "NOT REPRODUCED: the chain's limit is higher");
    for (unsigned l = 0; column == multi && l < 3; ++l)
      against_chain(report, text("sec. III-A: FNR after %.0f elements", double(gap)),
                    text("%s, level %u", name, kLevels[l]).c_str(), forgotten[l],
                    ibf_model::fnr(kLevels[l], static_cast<double>(gap), levels, setting));
  }
  bench::DataFile file(
      arguments, "ibf-fig18",
      "elements BF SBF IBF-2C IBF-MC IBF-H, then the chain's limits of the last 4");
  const bench::ImportanceStream equal(rows, 0, Frequency::equal, 1);
  for (std::uint64_t point = 0; point <= points; ++point) {
    std::vector<double> row{static_cast<double>(point * (rows / points))};
    row.insert(row.end(), zeros[point].begin(), zeros[point].begin() + kShown);
    for (const Column column : {sbf, two, multi, h})
      row.push_back(ibf_model::zeros(
          levels_of(column, equal),
          {kK, kP, static_cast<double>(scale.bytes) * 8 / 3, deletion_of(column)}));
    file.row(row);
  }
}

// Table II: once BF is full, its FP is the share of new elements, and the FP of another filter
// divided by it is that filter's FPR.
void printed_table_two(bench::Report& report) {
  struct Printed {
    Column column;
    double fp[2];
  };
  constexpr double kBf = 34.81;
  constexpr Printed kPrinted[] = {
      {sbf, {25.83, 26}}, {two, {16.14, 10.16}}, {multi, {5.19, .84}}, {h, {9.08, .12}}};
  const bench::ImportanceStream equal(1, 0, Frequency::equal, 1);
  for (const Printed& printed : kPrinted)
    for (unsigned set = 0; set < 2; ++set) {
      // In dataset 2 all importances are equally frequent; in dataset 1 SBF alone knows none.
      if (set == 0 && printed.column != sbf) continue;
      const double limit = ibf_model::fpr_limit(levels_of(printed.column, equal),
                                                {kK, kP, 43690, deletion_of(printed.column)});
      const double ratio = printed.fp[set] / kBf;
      report.line(text("table II: FP of %s / BF's", kCombinations[printed.column].name),
                  text("YouTube %u; ours: chain's limit", set + 1), text("%.3f", ratio),
                  text("%.3f", limit),
                  std::fabs(ratio - limit) < .01 ? "agrees: SBF at its limit, BF full"
                                                 : "not explained by the chain");
    }
}

}  // namespace

int main(int count, char** words) {
  const bench::Arguments arguments = bench::read_arguments(count, words);
  const Scale scale =
      arguments.quick ? Scale{2048, 12500, 1, 12, true} : Scale{16384, 100000, 4, 32, false};
  bench::Report report("ibf.txt, figures 9-18 and table II");
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
        const Tally& t = outcome.tally[column];
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
