// Two merged filters of counting cells can hold more than one filter may. Then cells are
// decremented, in the kind's own way, until the rate that it keeps for ever holds again.
#pragma once

#include <cmath>

#include "core/base/random.hpp"
#include "core/bits/packed_cells.hpp"
#include "core/model/importance_model.hpp"

namespace streamfilter {

// For each value, how many cells of a region may have that value or more: the numbers reached in
// the long run if all keys are new and most important. Once all numbers are lower, no stream can
// exceed them, so the kind's bound still holds.
struct CellLimits {
  CellLimits(unsigned largest, const importance_model::Setting& setting, double m) noexcept
      : max(largest) {
    double share[importance_model::kMaxLevels + 1], sum = 0;
    importance_model::stationary(importance_model::most_important(max), setting, share);
    for (unsigned value = max; value > 0; --value) {
      sum += share[value];
      at_least[value] = static_cast<std::uint64_t>(std::floor(sum * m));
    }
  }

  // True if more cells than allowed have some value or more. `count[v]` cells have value v.
  bool exceeded_by(const std::uint64_t* count) const noexcept {
    std::uint64_t sum = 0;
    for (unsigned value = max; value > 0; --value) {
      sum += count[value];
      if (sum > at_least[value]) return true;
    }
    return false;
  }

  unsigned max;
  std::uint64_t at_least[importance_model::kMaxLevels + 1] = {};
};

// Subtracts 1 from cells: from runs of `decrements` adjacent cells with a random start, or with
// `by_value` from cells drawn at random and taken with probability 1/value. Returns how many became
// zero.
template <unsigned bits>
std::uint64_t thin_out(const PackedCells<bits>& cells, std::uint64_t m, std::uint64_t decrements,
                       bool by_value, const CellLimits& limits, std::uint64_t& random) noexcept {
  std::uint64_t count[importance_model::kMaxLevels + 1] = {}, emptied = 0;
  for (std::uint64_t i = 0; i < m; ++i) ++count[cells.get(i)];
  while (limits.exceeded_by(count)) {
    std::uint64_t at = random_below(random, m);
    for (std::uint64_t left = by_value ? 1 : decrements; left > 0; --left) {
      const unsigned value = cells.get(at);
      if (value > 0 && (!by_value || value == 1 || random_below(random, value) == 0)) {
        cells.set(at, value - 1);
        --count[value];
        ++count[value - 1];
        emptied += value == 1;
      }
      if (++at == m) at = 0;
    }
  }
  return emptied;
}

}  // namespace streamfilter
