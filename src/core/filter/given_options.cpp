#include "core/filter/given_options.hpp"

#include <charconv>
#include <cstdio>

#include "core/filter/auto_kind.hpp"
#include "core/kind/filter_ops.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr unsigned kCommon = 12;

const char* name_of(Slicing slicing) noexcept {
  switch (slicing) {
    case Slicing::vertical: return "vertical";
    case Slicing::diced: return "diced";
    default: return "horizontal";
  }
}

// The kind whose own options a definition may have; nullptr: none.
const FilterOps* ops_of(const Definition& definition) noexcept {
  if (definition.parameters.kind != Kind::automatic) return find_ops(definition.parameters.kind);
  return definition.given != 0 ? kind_of_auto_option("window") : nullptr;
}

}  // namespace

bool GivenOptions::take(const char* name, const char* value) noexcept {
  name_ = name;
  std::snprintf(value_, sizeof value_, "%s", value);
  return true;
}

bool GivenOptions::take(const char* name, std::uint64_t value) noexcept {
  name_ = name;
  *std::to_chars(value_, value_ + sizeof value_ - 1, value).ptr = '\0';
  return true;
}

// One of the options that every kind has; false: it is not given.
bool GivenOptions::read_common(unsigned number) noexcept {
  const Definition& given = definition_;
  const Parameters& p = given.parameters;
  char text[32];
  switch (number) {
    case 0: return take("kind", p.kind == Kind::automatic ? "auto" : find_ops(p.kind)->name);
    case 1:
      print_size(p.memory, text, sizeof text);
      return given.memory_given && take("memory", text);
    case 2: return p.keys > 0 && take("keys", p.keys);
    case 3:
      *std::to_chars(text, text + sizeof text - 1, p.fpr).ptr = '\0';
      return p.fpr > 0 && take("fpr", text);
    case 4:
      return given.layout_given &&
             take("layout", p.layout == Layout::blocked ? "blocked" : "scattered");
    case 5:
      return given.nulls_given &&
             take("nulls", p.nulls == Nulls::distinct ? "distinct" : "not distinct");
    case 6: return given.seed_given && take("seed", p.seed);
    case 7: print_slices(p, text, sizeof text); return given.slices_given && take("slices", text);
    case 8: return given.slicing_given && take("slicing", name_of(p.slicing));
    case 9: return given.dice_given && take("dice", p.dice == Dice::vh ? "vh" : "hv");
    case 10: return p.k1 > 0 && take("k1", p.k1);
    default: return p.k2 > 0 && take("k2", p.k2);
  }
}

bool GivenOptions::read_own(unsigned number) noexcept {
  const OptionSpec& option = ops_of(definition_)->options[number];
  if (!definition_.has(option.slot)) return false;
  name_ = option.name;
  print_option(definition_.parameters, option, value_, sizeof value_);
  return true;
}

bool GivenOptions::next() noexcept {
  const FilterOps* ops = ops_of(definition_);
  const unsigned own = ops != nullptr ? ops->option_count : 0;
  while (next_ < kCommon + own) {
    const unsigned number = next_++;
    if (number < kCommon ? read_common(number) : read_own(number - kCommon)) return true;
  }
  return false;
}

}  // namespace streamfilter
