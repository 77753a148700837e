// Figures 9-17 and table II of Bhoraskar et al. 2013: errors by importance on its synthetic
// streams.
#pragma once

#include <array>

#include "bench/papers/ibf/ibf_setting.hpp"

namespace bench::ibf {

using PerImportance = std::array<double, kImportances + 1>;

struct ErrorCounts {
  PerImportance positives{}, negatives{};
};

struct Outcome {
  PerImportance rows{}, fresh{};
  std::vector<ErrorCounts> errors;
  // The number of errors that a filter can make only if some cell of SBF is below that of IBF.
  std::uint64_t exceptions = 0, differences = 0;
};

inline double sum(const PerImportance& counts, unsigned from = 1, unsigned to = kImportances,
                  bool weighted = false) {
  double total = 0;
  for (unsigned i = from; i <= to; ++i) total += counts[i] * (weighted ? i : 1);
  return total;
}

inline double rate(const Outcome& outcome, const PerImportance& errors, unsigned from = 1,
                   unsigned to = kImportances) {
  return sum(errors, from, to) / sum(outcome.rows, from, to);
}

// As defined in Bhoraskar et al. 2013 §IV-B; streamfilter_evaluate uses the same definition.
inline double weighted_rate(const Outcome& outcome, const PerImportance& errors) {
  return sum(errors, 1, kImportances, true) / sum(outcome.rows, 1, kImportances, true);
}

inline Outcome run(const std::vector<Combination>& combinations, const Scale& scale,
                   Frequency frequency, double repeats) {
  Outcome outcome;
  outcome.errors.resize(combinations.size());
  for (std::uint64_t seed = 1; seed <= scale.permutations; ++seed) {
    ImportanceStream stream(scale.rows, repeats, frequency, seed);
    SeenKeys truth(stream.universe());
    std::vector<Filter> filters;
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
        outcome.errors[c].positives[i] += seen[c] && !repeat;
        outcome.errors[c].negatives[i] += !seen[c] && repeat;
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
inline constexpr Case kCases[] = {{Frequency::equal, "equal", 9, 10, 11},
                                  {Frequency::inverse, "inverse", 12, 13, 14},
                                  {Frequency::proportional, "proportional", 15, 16, 17}};
inline constexpr double kRepeats[] = {.1, .3, .5};
inline constexpr double kPlotted = .3;

inline void write_figures(const Arguments& arguments, const Case& c, const Outcome& outcome) {
  const auto name = [](unsigned figure) { return text("ibf-fig%u", figure); };
  const std::string columns = "importance BF SBF IBF-2C IBF-MC IBF-H (per cent)";
  DataFile distribution(arguments, name(c.distribution), "importance per_cent new_per_cent");
  DataFile positives(arguments, name(c.positives), columns);
  DataFile negatives(arguments, name(c.negatives), columns);
  for (unsigned i = 1; i <= kImportances; ++i) {
    const double share = 100 / outcome.rows[i], all = sum(outcome.rows);
    distribution.row({double(i), 100 * outcome.rows[i] / all, 100 * outcome.fresh[i] / all});
    std::vector<double> p{double(i)}, n{double(i)};
    for (unsigned column = 0; column < kShown; ++column) {
      p.push_back(share * outcome.errors[column].positives[i]);
      n.push_back(share * outcome.errors[column].negatives[i]);
    }
    positives.row(p);
    negatives.row(n);
  }
}

// The number of standard errors by which the first range of importances has the higher rate.
inline double deviations(const Outcome& outcome, const PerImportance& errors, unsigned from_a,
                         unsigned to_a, unsigned from_b, unsigned to_b) {
  const double n_a = sum(outcome.rows, from_a, to_a), n_b = sum(outcome.rows, from_b, to_b);
  const double a = rate(outcome, errors, from_a, to_a), b = rate(outcome, errors, from_b, to_b);
  return (a - b) / std::sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b);
}

// The weighted false negatives of SBF at a weighted rate of false positives, interpolated between
// two settings of P.
inline double at_equal_positives(const std::vector<std::array<double, 2>>& curve,
                                 double positives) {
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const auto [high, low_fn] = curve[i - 1];
    const auto [low, high_fn] = curve[i];
    if (positives <= high && positives >= low)
      return low_fn + (high - positives) / (high - low) * (high_fn - low_fn);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The number of rows of equal weight whose rate has the same standard error.
inline double effective_rows(const Outcome& outcome) {
  double sum_of_squares = 0;
  for (unsigned i = 1; i <= kImportances; ++i) sum_of_squares += outcome.rows[i] * i * i;
  const double all = sum(outcome.rows, 1, kImportances, true);
  return all * all / sum_of_squares;
}

inline void compare_at_equal_positives(Report& report, const Case& c, const Outcome& outcome,
                                       const Scale& scale) {
  std::vector<Combination> settings;
  std::vector<std::string> definitions;
  for (const unsigned p : {10, 13, 17, 22, 29, 38, 50, 70, 100, 150, 250})
    definitions.push_back(text("sbf(max=7, cell_bits=3, k=5, p=%u", p));
  for (const std::string& setting : definitions)
    settings.push_back({"SBF", setting.c_str(), false});
  const Outcome stable = run(settings, scale, c.frequency, kPlotted);
  std::vector<std::array<double, 2>> curve;
  for (const ErrorCounts& errors : stable.errors)
    curve.push_back(
        {weighted_rate(stable, errors.positives), weighted_rate(stable, errors.negatives)});
  for (const Column column : {two, multi, h}) {
    const double positives = weighted_rate(outcome, outcome.errors[column].positives);
    const double own = weighted_rate(outcome, outcome.errors[column].negatives);
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

inline void judge(Report& report, const Case& c, const Outcome& outcome) {
  const std::vector<ErrorCounts>& errors = outcome.errors;
  for (unsigned column = 0; column < kShown; ++column) {
    const ErrorCounts& t = errors[column];
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
      lower += errors[column].positives[i] < errors[sbf].positives[i];
    report.check(lower >= 45, text("fig. %u: FP below SBF's", c.positives),
                 text("%s, %s, of 50 importances", name, c.name), "almost all", text("%u", lower),
                 "at 45 or more");
    const double negatives = rate(outcome, errors[column].negatives, kHigh) -
                             rate(outcome, errors[sbf].negatives, kHigh);
    const double positives = rate(outcome, errors[column].positives, kHigh) -
                             rate(outcome, errors[sbf].positives, kHigh);
    const bool printed = c.frequency == Frequency::inverse;
    report.line(text("fig. %u: FP less SBF's", c.positives), text("%s, importance > 35", name),
                printed ? "-8 pt" : "lower", text("%+.2f pt", 100 * positives),
                positives < 0 ? "reproduced in sign" : "NOT REPRODUCED");
    report.line(text("fig. %u: FN less SBF's", c.negatives), text("%s, importance > 35", name),
                printed ? "-4 pt" : "<= 0", text("%+.2f pt", 100 * negatives),
                negatives <= 0 ? "reproduced in sign" : "NOT REPRODUCED");
  }
  const double falls = deviations(outcome, errors[multi].negatives, 1, 8, 44, 50),
               classes = deviations(outcome, errors[two].negatives, 1, 25, 26, 50);
  if (c.frequency == Frequency::equal) {
    report.check(falls > 4, text("fig. %u: FN falls with importance", c.negatives),
                 "IBF-MC, lowest to highest level", "", text("%.1f s.e.", falls), "above 4 s.e.");
    report.check(classes > 4, text("fig. %u: two classes of FN", c.negatives),
                 "IBF-2C, importance <= 25, > 25", "", text("%.1f s.e.", classes), "above 4 s.e.");
  }
  if (c.frequency == Frequency::inverse)
    for (const Column column : {bf, sbf}) {
      const double rises = deviations(outcome, errors[column].positives, 41, 50, 1, 10);
      report.check(rises > 4, text("fig. %u: FP rises with importance", c.positives),
                   text("%s, 1-10 to 41-50", kCombinations[column].name), "",
                   text("%.1f s.e.", rises), "above 4 s.e.");
    }
}

}  // namespace bench::ibf
