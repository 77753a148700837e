#include <boost/math/tools/roots.hpp>

#include "core/base/math_policy.hpp"
#include "core/filter/common_options.hpp"
#include "core/filter/derivation.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"

namespace streamfilter {
namespace {

constexpr std::uint64_t kDefaultMemory = 1u << 20;
constexpr std::uint64_t kMinSliceBytes = sizeof(SliceState) + 64;
constexpr double kForgettable = 0.01;  // a key counts as remembered up to this false-negative rate

// Lays out `memory` bytes, and derives the kind's parameters for them.
bool derive_in_memory(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.is_given(Common::slices)) p.slices = default_slices(p.memory);
  const std::uint64_t least = kStoredHeader + p.slices * kMinSliceBytes;
  if (p.memory < least) {
    problem.set(Error::too_small, "memory of %llu bytes is too small for a filter", llu(p.memory));
    return problem.add_hint("A filter of %u %s needs at least %llu bytes.", p.slices,
                            p.slices == 1 ? "slice" : "slices", llu(least));
  }
  p.slice_bytes = (p.memory - kStoredHeader) / p.slices & ~std::uint64_t{63};
  p.key_shift = 0;
  if (!find_ops(p.kind)->derive(definition, problem)) return false;
  derive_probes(p);
  return true;
}

bool keeps_fpr(const Definition& definition) noexcept {
  return find_ops(definition.parameters.kind)->fpr_bound(definition.parameters) <=
         definition.wanted_fpr();
}

double held_keys(const Parameters& p) noexcept {
  const auto held = find_ops(p.kind)->held_keys;
  return held != nullptr ? held(p) : window_keys(p, kForgettable);
}

// Would the kind keep fpr in this memory, and remember the keys?
bool suffices(Definition attempt, std::uint64_t memory) noexcept {
  Problem ignored;
  Parameters& p = attempt.parameters;
  p.memory = memory;
  return derive_in_memory(attempt, ignored) && keeps_fpr(attempt) &&
         (!find_ops(p.kind)->remembers_keys || held_keys(p) >= to_real(p.keys));
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

static bool cannot_keep(const Definition& definition, Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  problem.set(Error::conflict, "kind %s cannot keep fpr %g for %llu keys in %llu bytes",
              find_ops(p.kind)->name, definition.wanted_fpr(), llu(p.keys), llu(p.memory));
  problem.add_detail("Its false-positive rate would reach %.3g.", find_ops(p.kind)->fpr_bound(p));
  char forever[200];
  list_kinds([](const FilterOps& ops) { return ops.keeps_fpr_forever; }, forever, sizeof forever);
  if (const std::uint64_t needed = memory_for_keys(definition))
    return problem.add_hint(
        "%llu bytes would do. In any memory, fpr is kept by: %s; they forget "
        "old keys instead.",
        llu(needed), forever);
  return problem.add_hint("In any memory, fpr is kept by: %s; they forget old keys instead.",
                          forever);
}

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

// ---- slices -------------------------------------------------------------------------------------

// k1 and k2 are a slicing of their own (§3.3): they say what k is. With k1 = 1 it is the horizontal
// one, with k2 = 1 the vertical one.
static bool check_k1_k2(Definition& definition, const FilterOps& ops, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.k1 == 0 || p.k2 == 0) {
    problem.set(Error::conflict, "options k1 and k2 belong together");
    return problem.add_hint("A key has k1 places with k2 of its bits in each: give both.");
  }
  if (p.slicing != Slicing::horizontal) {
    problem.set(Error::conflict, "options k1 and k2 cannot be combined with slicing \"%s\"",
                p.slicing == Slicing::vertical ? "vertical" : "diced");
    return problem.add_hint("k1 places of k2 bits are a slicing of their own: leave slicing out.");
  }
  const OptionSpec& k = *find_option(ops, "k");
  const std::uint64_t bits = std::uint64_t{p.k1} * p.k2;
  if (definition.has(k.word) && p.integer(k.word) != bits) {
    problem.set(Error::conflict, "k1 times k2 is not k");
    return problem.add_detail("%u times %u is %u, but k is %u.", p.k1, p.k2,
                              static_cast<unsigned>(bits),
                              static_cast<unsigned>(p.integer(k.word)));
  }
  if (to_real(bits) > k.high) {
    problem.set(Error::out_of_range, "k1 times k2 is out of range");
    return problem.add_detail("It must be between 1 and %.15g.", k.high);
  }
  p.set_integer(k.word, bits);
  definition.given |= WordSet{1} << k.word;
  if (p.k1 > 1 && p.k2 > 1) return true;
  if (p.k2 == 1 && p.k1 > 1) p.slicing = Slicing::vertical;
  p.k1 = p.k2 = 0;
  definition.leave_out(Common::k1, Common::k2);
  return true;
}

// Divided by `part` and rounded the same way, it is what the whole is, divided by `of`.
static std::uint64_t share_of(std::uint64_t whole, std::uint64_t part, std::uint64_t of,
                              Share share) noexcept {
  const std::uint64_t more = share == Share::rounded_up ? of - 1 : 0;
  const auto result = (static_cast<unsigned __int128>(whole) * part + more) / of;
  return std::max(static_cast<std::uint64_t>(result), std::uint64_t{1});
}

static bool is_of_all_slices(const Parameters& p, const OptionSpec& option) noexcept {
  return option.share != Share::none && in_use(p, option) &&
         (option.type != OptionType::span || counts_rows(p, option));
}

void take_share(Parameters& p, std::uint32_t slices) noexcept {
  if (slices == p.slices) return;
  const FilterOps* ops = find_ops(p.kind);
  for (const OptionSpec& option : ops->options) {
    if (option.share == Share::follows)
      p.set_integer(option.word, 0);
    else if (is_of_all_slices(p, option))
      p.set_integer(option.word, share_of(p.integer(option.word), slices, p.slices, option.share));
  }
}

bool check_slicing(Definition& definition, const FilterOps& ops, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.slicing == Slicing::diced ? p.slices2 == 0 : p.slices2 != 0) {
    problem.set(Error::conflict, p.slices2 == 0 ? "slicing \"diced\" needs two numbers of slices"
                                                : "two numbers of slices need slicing \"diced\"");
    return problem.add_hint("For example: slicing 'diced', slices '8,5'.");
  }
  if (p.slicing != Slicing::diced && (definition.is_given(Common::dice) || p.dice != Dice::hv)) {
    problem.set(Error::conflict, "option dice needs slicing \"diced\"");
    return problem.add_hint("For example: slicing 'diced', dice 'vh', slices '8,5'.");
  }
  if (p.slicing == Slicing::horizontal && !definition.has_probes()) return true;
  if (!ops.has_probes) {
    problem.set(Error::unsupported, "kind %s can be sliced horizontally only", ops.name);
    char names[80];
    list_kinds([](const FilterOps& other) { return other.has_probes; }, names, sizeof names);
    return problem.add_hint("Leave slicing out, or use one of the kinds: %s.", names);
  }
  if (p.layout == Layout::blocked) {
    problem.set(Error::conflict, "layout \"blocked\" goes with horizontal slices only");
    return problem.add_hint("It keeps all bits of a key in one line of one slice.");
  }
  return !definition.has_probes() || check_k1_k2(definition, ops, problem);
}

void derive_probes(Parameters& p) noexcept {
  if (p.slicing == Slicing::horizontal) return;
  p.k1 = static_cast<std::uint8_t>(p.integer(find_option(*find_ops(p.kind), "k")->word));
  p.k2 = 1;
}

}  // namespace streamfilter
