#include "core/filter/wordings.hpp"

#include <bit>
#include <cstring>

#include "core/filter/common_options.hpp"
#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

// Options of every kind that a wording has or has not.
constexpr unsigned kCommon = static_cast<unsigned>(std::popcount(kGeometry));

}  // namespace

std::uint64_t count_wordings(const Parameters& complete) noexcept {
  return std::uint64_t{1} << (kCommon + find_ops(complete.kind)->options.size());
}

Definition wording_of(const Parameters& complete, std::uint64_t number) noexcept {
  Definition definition;
  Parameters& asked = definition.parameters;
  const auto has_next = [&number] {
    const bool has = (number & 1) != 0;
    number >>= 1;
    return has;
  };
  for (const CommonOption& option : kCommonOptions) {
    if (!contains(kGeometry, option.id) || !has_next()) continue;
    option.value.copy(asked, complete);
    definition.give(option.id);
  }
  const FilterOps* ops = find_ops(complete.kind);
  for (const OptionSpec& option : ops->options) {
    if (!has_next()) continue;
    std::memcpy(&asked.word[option.word], &complete.word[option.word],
                words_of(complete, option) * sizeof *asked.word);
    definition.given |= WordSet{1} << option.word;
  }
  return definition;
}

}  // namespace streamfilter
