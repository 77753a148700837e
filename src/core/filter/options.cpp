#include "core/filter/options.hpp"
#include "core/filter/common_options.hpp"
#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"

namespace streamfilter {
namespace {

// What other products call their options.
struct Foreign {
  const char* name;
  const char* ours;
};
constexpr Foreign kForeignNames[] = {
    {"capacity", "keys"},    {"expected_items", "keys"},     {"expected_insertions", "keys"},
    {"error_rate", "fpr"},   {"false_positive_rate", "fpr"}, {"fpp", "fpr"},
    {"ttl", "window"},       {"expiration", "window"},       {"expansion", "grow"},
    {"max_memory", "memory"}};

bool unknown_option(const FilterOps* ops, const char* name, WordList own_options,
                    Problem& problem) noexcept {
  // Tells an option of another kind from a misspelt one.
  for (const FilterOps* other : all_ops())
    if (other != ops && find_option(*other, name) != nullptr) {
      problem.set(Error::unknown_name, "kind %s has no option \"%s\"",
                  ops != nullptr ? ops->name : "auto", name);
      return problem.add_hint("It is an option of kind %s.", other->name);
    }
  problem.set(Error::unknown_name, "invalid option \"%s\"", Excerpt(name).text());
  if (const Foreign* foreign = find_named(kForeignNames, name))
    return problem.add_hint("Here that option is called \"%s\".", foreign->ours);
  NearestName nearest(name);
  char names[384];
  TextWriter out(names, sizeof names);
  const auto add = [&](const char* option) {
    nearest.consider(option);
    out.add(out.length() > 0 ? ", " : "");
    out.add(option);
  };
  for (const CommonOption& option : kCommonOptions) add(option.name);
  for (const OptionSpec& option : options_of(ops)) add(option.name);
  // Those of the host are no part of the filter.
  for (; *own_options != nullptr; ++own_options) add(*own_options);
  if (nearest.name() != nullptr)
    return problem.add_hint("Perhaps you meant the option \"%s\".", nearest.name());
  return problem.add_hint("Valid options are: %s.", names);
}

// The kind whose option `name` auto takes, too; nullptr if there is none.
const FilterOps* kind_of_auto_option(const char* name) noexcept {
  for (const FilterOps* ops : all_ops())
    if (const OptionSpec* option = find_option(*ops, name);
        option != nullptr && (ops->chosen_by >> option->word & 1))
      return ops;
  return nullptr;
}

}  // namespace

bool set_option(Definition& definition, const char* name, const char* value, Problem& problem,
                WordList own_options) noexcept {
  if (const CommonOption* option = find_named(kCommonOptions, name)) {
    if (!option->set(definition, *option, value, problem)) return false;
    definition.give(option->id);
    return true;
  }
  const Kind kind = definition.parameters.kind;
  const FilterOps* ops = kind == Kind::automatic ? kind_of_auto_option(name) : find_ops(kind);
  if (const OptionSpec* option = ops != nullptr ? find_option(*ops, name) : nullptr)
    return set_kind_option(definition, *option, value, problem);
  return unknown_option(ops, name, own_options, problem);
}

const OptionSpec* find_option(const FilterOps& ops, const char* name) noexcept {
  return find_named(ops.options, name);
}

const FilterOps* kind_of_options(const Definition& definition) noexcept {
  if (definition.parameters.kind != Kind::automatic) return find_ops(definition.parameters.kind);
  for (const FilterOps* ops : all_ops())
    if ((definition.given & ops->chosen_by) != 0) return ops;
  return nullptr;
}

bool in_range(const Parameters& p) noexcept {
  for (const CommonOption& option : kCommonOptions)
    if (!option.in_range(p)) return false;
  const FilterOps* ops = find_ops(p.kind);
  for (const OptionSpec& option : ops->options)
    if (in_use(p, option) && !option_in_range(p, option)) return false;
  return true;
}

// ---- lists --------------------------------------------------------------------------------------

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
