// Options importance_range and importance_levels: turn an importance into a level, by equal parts
// of a range or by thresholds. The importance may be any number: beyond the ends of a range it
// counts as the nearest end, infinities included, and NaN as the least.
#pragma once

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter::importance {

constexpr double kMaxImportance = 1e300;

// The words of the two options in a kind's table.
struct Words {
  unsigned range, levels;
};

constexpr OptionSpec range_option(unsigned word) noexcept {
  return {.word = word,
          .name = "importance_range",
          .type = OptionType::reals,
          .low = -kMaxImportance,
          .high = kMaxImportance,
          .max_count = 2};
}

constexpr OptionSpec levels_option(unsigned word, unsigned most) noexcept {
  OptionSpec option = range_option(word);
  option.name = "importance_levels";
  option.max_count = most;
  return option;
}

inline bool check(const Definition& definition, const Words& words, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  if (definition.has(words.range) && definition.has(words.levels)) {
    problem.set(Error::conflict,
                "options importance_range and importance_levels exclude each other");
    return problem.add_hint("Leave out one of them.");
  }
  if (definition.has(words.levels)) {
    for (unsigned i = 1; i < p.integer(words.levels); ++i)
      if (!(p.real(words.levels + i) < p.real(words.levels + i + 1)))
        return problem.set(Error::conflict, "the numbers of option importance_levels must ascend");
    return true;
  }
  if (p.integer(words.range) != 2 || !(p.real(words.range + 1) < p.real(words.range + 2))) {
    problem.set(Error::conflict, "option importance_range must be two ascending numbers");
    return problem.add_hint("For example: importance_range '0,100'.");
  }
  return true;
}

// The level, 0 to `parts`, the most important last. `parts`: of the range; thresholds set it to
// their number. Comparisons are false for NaN.
inline unsigned part(const Parameters& p, const Words& words, double importance,
                     unsigned& parts) noexcept {
  unsigned result = 0;
  if (const unsigned thresholds = static_cast<unsigned>(p.integer(words.levels)); thresholds > 0) {
    parts = thresholds;
    while (result < parts && importance >= p.real(words.levels + 1 + result)) ++result;
    return result;
  }
  const double low = p.real(words.range + 1), high = p.real(words.range + 2);
  const double scaled = (importance - low) / (high - low) * (parts + 1);
  if (scaled >= parts) return parts;
  return scaled > 0 ? static_cast<unsigned>(scaled) : 0;
}

}  // namespace streamfilter::importance
