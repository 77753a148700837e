#include "core/filter/derivation.hpp"

#include <boost/math/tools/roots.hpp>
#include <cmath>
#include <limits>

#include "core/base/math_policy.hpp"
#include "core/filter/common_options.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/slicing_rules.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr std::uint64_t kDefaultMemory = 1u << 20;
constexpr std::uint64_t kMinSliceBytes = sizeof(SliceState) + 64;
constexpr double kForgettable = 0.01;  // a key counts as remembered up to this false-negative rate

// Lays out `memory` bytes, and derives the kind's parameters for them.
bool derive_in_memory(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.is_given(Common::slices)) p.slices = default_slices(p.memory);
  const std::uint64_t least = sizeof(Header) + p.slices * kMinSliceBytes;
  if (p.memory < least) {
    problem.set(Error::too_small, "memory of %llu bytes is too small for a filter",
                static_cast<unsigned long long>(p.memory));
    return problem.add_hint("A filter of %u %s needs at least %llu bytes.", p.slices,
                            p.slices == 1 ? "slice" : "slices",
                            static_cast<unsigned long long>(least));
  }
  p.slice_bytes = (p.memory - sizeof(Header)) / p.slices & ~std::uint64_t{63};
  p.key_shift = 0;
  if (!find_ops(p.kind)->derive(definition, problem)) return false;
  derive_probes(p);
  return true;
}

bool keeps_fpr(const Definition& definition) noexcept {
  return find_ops(definition.parameters.kind)->fpr_bound(definition.parameters) <=
         definition.wanted_fpr();
}

// Would the kind keep fpr in this memory, and remember the keys?
bool suffices(Definition attempt, std::uint64_t memory) noexcept {
  Problem ignored;
  Parameters& p = attempt.parameters;
  p.memory = memory;
  return derive_in_memory(attempt, ignored) && keeps_fpr(attempt) &&
         (!find_ops(p.kind)->remembers_keys ||
          window_keys(p, kForgettable) >= static_cast<double>(p.keys));
}

}  // namespace

std::uint64_t memory_for_keys(const Definition& definition) noexcept {
  const auto enough = [&](std::uint64_t memory) { return suffices(definition, memory); };
  std::uint64_t high = 1024;
  while (!enough(high)) {
    high *= 2;
    if (high > kMaxMemory) return 0;
  }
  std::uint64_t low = high / 2;
  while (high - low > high / 64 && high - low > 64) {
    const std::uint64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return (high + 63) & ~std::uint64_t{63};
}

std::uint64_t keys_for_memory(Definition attempt) noexcept {
  const auto enough = [&](std::uint64_t keys) {
    attempt.parameters.keys = keys;
    return suffices(attempt, attempt.parameters.memory);
  };
  std::uint64_t low = 0, high = 1;
  while (enough(high)) {
    low = high;
    high *= 2;
    if (high > kMaxKeys) return low;
  }
  while (high - low > low / 1024 + 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (enough(middle) ? low : high) = middle;
  }
  return low;
}

namespace {

bool cannot_keep(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  problem.set(Error::conflict, "kind %s cannot keep fpr %g for %llu keys in %llu bytes",
              find_ops(p.kind)->name, definition.wanted_fpr(),
              static_cast<unsigned long long>(p.keys), static_cast<unsigned long long>(p.memory));
  problem.add_detail("Its false-positive rate would reach %.3g.", find_ops(p.kind)->fpr_bound(p));
  char forever[200];
  list_kinds([](const FilterOps& ops) { return ops.keeps_fpr_forever; }, forever, sizeof forever);
  if (const std::uint64_t needed = memory_for_keys(definition))
    return problem.add_hint(
        "%llu bytes would do. In any memory, fpr is kept by: %s; they forget "
        "old keys instead.",
        static_cast<unsigned long long>(needed), forever);
  return problem.add_hint("In any memory, fpr is kept by: %s; they forget old keys instead.",
                          forever);
}

}  // namespace

bool derive_parameters(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  const FilterOps* ops = find_ops(p.kind);
  if (ops == nullptr) return problem.set(Error::unknown_name, "unknown kind of filter");
  if (p.layout == Layout::blocked && !ops->has_blocked_layout)
    return problem.set(Error::unsupported, "kind %s has no layout \"blocked\"", ops->name);
  if (!check_slicing(definition, *ops, problem)) return false;
  const bool promised = definition.given == 0 && p.keys > 0;
  if (!definition.is_given(Common::memory)) {
    const bool for_keys = p.keys > 0 && (!ops->keeps_fpr_forever || ops->remembers_keys ||
                                         (promised && !suffices(definition, kDefaultMemory)));
    p.memory = for_keys ? memory_for_keys(definition) : kDefaultMemory;
    if (p.memory == 0) p.memory = promised ? kMaxMemory : kDefaultMemory;
  }
  if (p.keys == 0 && ops->needs_keys != nullptr && ops->needs_keys(definition))
    p.keys = keys_for_memory(definition);
  if (!derive_in_memory(definition, problem)) return false;
  return !promised || keeps_fpr(definition) || definition.break_fpr() ||
         cannot_keep(definition, problem);
}

Definition definition_of(const Parameters& parameters) noexcept {
  Definition definition;
  definition.parameters = parameters;
  std::memset(definition.parameters.word, 0, sizeof definition.parameters.word);
  definition.common = kCompleteCommon;
  if (parameters.slicing == Slicing::horizontal && parameters.k1 > 0)
    definition.give(Common::k1, Common::k2);
  if (!definition.has_probes()) definition.parameters.k1 = definition.parameters.k2 = 0;
  for (const OptionSpec& option : options_of(find_ops(parameters.kind))) {
    if (!in_use(parameters, option)) continue;
    std::memcpy(&definition.parameters.word[option.word], &parameters.word[option.word],
                words_of(parameters, option) * sizeof *parameters.word);
    definition.given |= WordSet{1} << option.word;
  }
  return definition;
}

double window_keys(const Parameters& parameters, double fnr) noexcept {
  const FilterOps* ops = find_ops(parameters.kind);
  if (ops->fnr_at == nullptr) return std::numeric_limits<double>::quiet_NaN();
  double low = 0, high = 1;
  while (ops->fnr_at(parameters, high) <= fnr) {
    low = high;
    high *= 2;
    if (high > 1e18) return std::numeric_limits<double>::infinity();
  }
  std::uintmax_t rounds = 100;
  const auto root = boost::math::tools::bisect(
      [&](double gap) { return ops->fnr_at(parameters, gap) <= fnr ? -1.0 : 1.0; }, low, high,
      [](double a, double b) { return b - a < 0.5; }, rounds, MathPolicy());
  return std::floor(root.first);
}

}  // namespace streamfilter
