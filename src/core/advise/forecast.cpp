#include "core/advise/forecast.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/saturate.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

bool can_be_tried(const FilterOps& ops) noexcept {
  return !ops.counts_only && ops.forgets != Forgets::after_window && ops.uses_importance != always;
}

// The rate of `wrong` among `all`, with an error estimated from the differences between parts of
// the keys; at least the error of that many independent draws.
template <typename Part, typename Wrong, typename All>
Measured measure(const Part* parts, unsigned count, Wrong wrong, All all) noexcept {
  double errors = 0, rows = 0, squares = 0;
  for (unsigned i = 0; i < count; ++i) {
    errors += wrong(parts[i]);
    rows += all(parts[i]);
  }
  if (!(rows > 0)) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    return {kUnknown, kUnknown};
  }
  const double rate = errors / rows, share = (errors + 0.5) / (rows + 1);
  for (unsigned i = 0; i < count; ++i) {
    const double more = wrong(parts[i]) - rate * all(parts[i]);
    squares += more * more;
  }
  const double between = std::sqrt(squares * count / (count - 1)) / rows;
  return {rate, std::max(between, std::sqrt(share * (1 - share) / rows))};
}

}  // namespace

std::size_t find_repeats(const std::uint64_t* hashes, std::size_t count, std::uint64_t* table,
                         std::size_t size, bool* repeated) noexcept {
  std::fill_n(table, size, 0);
  std::size_t repeats = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t hash = std::max<std::uint64_t>(hashes[i], 1);
    std::size_t at = static_cast<std::size_t>(mix64(hash)) & (size - 1);
    while (table[at] != 0 && table[at] != hash) at = (at + 1) & (size - 1);
    repeated[i] = table[at] == hash;
    repeats += repeated[i];
    table[at] = hash;
  }
  return repeats;
}

unsigned list_recipes(Recipe* recipes) noexcept {
  unsigned count = 0;
  for (const FilterOps* ops : all_ops()) {
    if (!can_be_tried(*ops) || count + 10 > kMaxRecipes) continue;
    for (const bool is_for_keys : {false, true}) {
      if (!is_for_keys && !ops->keeps_fpr_forever) continue;
      recipes[count++] = {ops->kind, is_for_keys, nullptr, nullptr};
      for (const OptionToTry& option : ops->to_try)
        recipes[count++] = {ops->kind, is_for_keys, option.name, option.value};
    }
  }
  return count;
}

bool follow(const Recipe& recipe, const Definition& requested, std::uint64_t memory, double keys,
            Parameters& parameters) noexcept {
  Definition definition = requested;
  Problem problem;
  definition.parameters.kind = recipe.kind;
  definition.parameters.memory = memory;
  definition.parameters.keys =
      recipe.is_for_keys ? saturate<std::uint64_t>(std::ceil(std::max(keys, 1.0))) : 0;
  definition.may_break_fpr = recipe.is_for_keys;
  if ((recipe.option != nullptr && !set_option(definition, recipe.option, recipe.value, problem)) ||
      !complete(definition, problem))
    return false;
  parameters = definition.parameters;
  return true;
}

void Trial::take(const SampledRows& rows, std::size_t from, std::size_t to) noexcept {
  for (std::size_t i = from; i < to; ++i) {
    Element element{};
    element.hash = rows.hashes[i];
    const bool seen = insert(filter_, element);
    Part& part = parts_[mix64(sampling_position(rows.hashes[i])) % kParts];
    if (rows.repeated[i]) {
      ++part.repeats;
      part.false_negatives += !seen;
    } else {
      ++part.new_rows;
      part.false_positives += seen;
    }
  }
}

Forecast Trial::forecast() const noexcept {
  return {measure(
              parts_, kParts, [](const Part& part) { return part.false_positives; },
              [](const Part& part) { return part.new_rows; }),
          measure(
              parts_, kParts, [](const Part& part) { return part.false_negatives; },
              [](const Part& part) { return part.repeats; })};
}

}  // namespace streamfilter
