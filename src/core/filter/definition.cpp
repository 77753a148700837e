#include <bit>
#include <cstring>

#include "core/filter/auto_kind.hpp"
#include "core/filter/common_options.hpp"
#include "core/filter/definition.hpp"
#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {

bool complete(Definition& definition, Problem& problem) noexcept {
  if (definition.parameters.kind == Kind::automatic) {
    // The promise is the reason for the choice, so leniency must not influence it.
    definition.may_break_fpr = false;
    choose_kind(definition);
  }
  return derive_parameters(definition, problem);
}

bool mergeable(const Parameters& a, const Parameters& b, Problem& problem) noexcept {
  const FilterOps* ops = find_ops(a.kind);
  if (a.kind != b.kind) {
    problem.set(Error::mismatch, "filters of different kinds cannot be merged");
    return problem.add_detail("One is of kind %s, the other of kind %s.", ops->name,
                              find_ops(b.kind)->name);
  }
  if (ops->merge == nullptr)
    return problem.set(Error::unsupported, "filters of kind %s cannot be merged", ops->name);
  if (a.seed != b.seed) {
    problem.set(Error::mismatch, "filters with different seeds cannot be merged");
    problem.add_detail("One has the seed %llu, the other %llu.",
                       static_cast<unsigned long long>(a.seed),
                       static_cast<unsigned long long>(b.seed));
    return problem.add_hint(
        "Values have the same seed unless told otherwise; give named filters "
        "that are to be merged the same option seed.");
  }
  Parameters other = b;
  copy_options(other, a, kRequests);
  if (std::memcmp(&a, &other, sizeof a) == 0) return true;
  problem.set(Error::mismatch, "filters with different parameters cannot be merged");
  char left[180], right[180];
  print_definition(a, left, sizeof left);
  print_definition(b, right, sizeof right);
  problem.add_detail("One is %s, the other %s.", left, right);
  return problem.add_hint("Fill one of them again, from its keys, by the definition of the other.");
}

// ---- wordings -----------------------------------------------------------------------------------

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
