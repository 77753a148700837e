#include "core/filter/list_options.hpp"

#include "core/filter/common_options.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {

bool ListedOptions::read_common(Common id) noexcept {
  if (!has_value(definition_, id)) return false;
  const CommonOption& option = find_common(id);
  name_ = option.name;
  TextWriter out(value_, sizeof value_);
  option.write(out, definition_.parameters);
  return true;
}

bool ListedOptions::read_own(unsigned number) noexcept {
  const OptionSpec& option = kind_of_options(definition_)->options[number];
  if (!definition_.has(option.word)) return false;
  name_ = option.name;
  print_option(definition_.parameters, option, value_, sizeof value_);
  return true;
}

bool ListedOptions::next() noexcept {
  const std::size_t own = options_of(kind_of_options(definition_)).size();
  while (next_ < kCommonOptionCount + own) {
    const unsigned number = next_++;
    if (number < kCommonOptionCount ? read_common(static_cast<Common>(number))
                                    : read_own(number - kCommonOptionCount))
      return true;
  }
  return false;
}

}  // namespace streamfilter
