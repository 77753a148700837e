#include "core/filter/wordings.hpp"

#include <cstring>

#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr unsigned kCommon = 8;  // options of every kind that a wording has or has not

}  // namespace

std::uint64_t count_wordings(const Parameters& complete) noexcept {
  return std::uint64_t{1} << (kCommon + find_ops(complete.kind)->option_count);
}

Definition wording_of(const Parameters& complete, std::uint64_t number) noexcept {
  Definition definition;
  Parameters& asked = definition.parameters;
  const auto has_next = [&number] {
    const bool has = (number & 1) != 0;
    number >>= 1;
    return has;
  };
  const auto take = [&](Common option, auto member) {
    if (!has_next()) return;
    asked.*member = complete.*member;
    definition.give(option);
  };
  take(Common::kind, &Parameters::kind);
  take(Common::memory, &Parameters::memory);
  take(Common::slices, &Parameters::slices);
  take(Common::layout, &Parameters::layout);
  take(Common::slicing, &Parameters::slicing);
  take(Common::dice, &Parameters::dice);
  take(Common::k1, &Parameters::k1);
  take(Common::k2, &Parameters::k2);
  if (definition.is_given(Common::slices)) asked.slices2 = complete.slices2;
  const FilterOps* ops = find_ops(complete.kind);
  for (unsigned i = 0; i < ops->option_count; ++i) {
    const OptionSpec& option = ops->options[i];
    if (!has_next()) continue;
    std::memcpy(&asked.word[option.word], &complete.word[option.word],
                words_of(complete, option) * sizeof *asked.word);
    definition.given |= WordSet{1} << option.word;
  }
  return definition;
}

}  // namespace streamfilter
