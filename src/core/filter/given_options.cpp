#include "core/filter/given_options.hpp"

#include "core/filter/common_options.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

// The kind whose own options a definition may have; nullptr: none.
const FilterOps* ops_of(const Definition& definition) noexcept {
  if (definition.parameters.kind != Kind::automatic) return find_ops(definition.parameters.kind);
  return definition.given != 0 ? kind_of_auto_options() : nullptr;
}

}  // namespace

bool GivenOptions::next() noexcept {
  const Parameters& p = definition_.parameters;
  const FilterOps* ops = ops_of(definition_);
  const unsigned count = kCommonOptionCount + (ops != nullptr ? ops->option_count : 0);
  while (next_ < count) {
    const unsigned number = next_++;
    TextWriter out(value_, sizeof value_);
    if (number < kCommonOptionCount) {
      const CommonOption& option = kCommonOptions[number];
      if (!option.is_given(definition_)) continue;
      name_ = option.name;
      (option.write_given != nullptr ? option.write_given : option.write)(out, p);
      return true;
    }
    const OptionSpec& option = ops->options[number - kCommonOptionCount];
    if (!definition_.has(option.slot)) continue;
    name_ = option.name;
    write_option(out, p, option);
    return true;
  }
  return false;
}

}  // namespace streamfilter
