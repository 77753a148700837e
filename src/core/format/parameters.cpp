#include "core/format/parameters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/nearest_name.hpp"
#include "core/base/saturate.hpp"
#include "core/filter/auto_kind.hpp"
#include "core/filter/filter.hpp"
#include "core/filter/sharding_rules.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr std::uint64_t kDefaultMemory = 1u << 20;
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 46;
constexpr std::uint64_t kLeastSliceBytes = sizeof(SliceState) + 64;
constexpr std::uint32_t kMostSlices = 65536;
constexpr unsigned kMostPlaces = 64;
constexpr double kMostKeys = 1e15;
constexpr double kForgettable = 0.01;  // the false-negative rate of keys that count as remembered

constexpr const char* kLayouts[] = {"scattered", "blocked", nullptr};
constexpr const char* kNulls[] = {"distinct", "not distinct", nullptr};
constexpr const char* kSlicings[] = {"horizontal", "vertical", "diced", nullptr};
constexpr const char* kDices[] = {"hv", "vh", nullptr};
constexpr const char* kCommonOptions[] = {"kind",   "memory", "keys",    "fpr",  "seed", "nulls",
                                          "slices", "layout", "slicing", "dice", "k1",   "k2"};

bool parse_real(const char* text, double& value) noexcept {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  return error == std::errc{} && stop == end && end != text;
}

// A whole number; 1e6 and 1000000.0 are read, too. Plain digits are exact up to 2^64 - 1.
bool parse_integer(const char* text, std::uint64_t& value) noexcept {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc{} && stop == end && end != text) return true;
  double real;
  if (!parse_real(text, real) || real != std::floor(real) || real < 0 || real >= 0x1p63)
    return false;
  value = static_cast<std::uint64_t>(real);
  return true;
}

bool find_choice(const char* const* choices, const char* text, std::uint64_t& index) noexcept {
  for (std::uint64_t i = 0; choices[i] != nullptr; ++i)
    if (std::strcmp(choices[i], text) == 0) {
      index = i;
      return true;
    }
  return false;
}

bool bad_value(Problem& problem, Error error, const char* option, const char* value) noexcept {
  return problem.set(error, "invalid value for option \"%s\": \"%s\"", option,
                     Excerpt(value).text());
}

bool bad_range(Problem& problem, const char* option, const char* value, double low,
               double high) noexcept {
  problem.set(Error::out_of_range, "value \"%s\" is out of range for option \"%s\"",
              Excerpt(value).text(), option);
  return problem.add_detail("It must be between %.15g and %.15g.", low, high);
}

bool bad_choice(Problem& problem, const char* option, const char* value,
                const char* const* choices) noexcept {
  bad_value(problem, Error::syntax, option, value);
  char list[256] = "";
  for (std::size_t i = 0, length = 0; choices[i] != nullptr && length < sizeof list; ++i)
    length += static_cast<std::size_t>(
        std::snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? ", " : "", choices[i]));
  return problem.add_hint("Valid values are: %s.", list);
}

bool set_kind(Definition& definition, const char* value, Problem& problem) noexcept {
  if (std::strcmp(value, "auto") == 0) {
    definition.parameters.kind = Kind::automatic;
    return true;
  }
  if (const FilterOps* ops = find_ops(value)) {
    definition.parameters.kind = ops->kind;
    return true;
  }
  problem.set(Error::unknown_name, "unrecognized kind of filter \"%s\"", Excerpt(value).text());
  NearestName nearest(value);
  nearest.consider("auto");
  unsigned count;
  const FilterOps* const* all = all_ops(count);
  for (unsigned i = 0; i < count; ++i) nearest.consider(all[i]->name);
  char names[256];
  list_kinds([](const FilterOps&) { return true; }, names, sizeof names);
  if (nearest.name() != nullptr)
    return problem.add_hint("Perhaps you meant \"%s\". Valid kinds are: auto, %s.", nearest.name(),
                            names);
  return problem.add_hint("Valid kinds are: auto, %s.", names);
}

bool unknown_option(const FilterOps* ops, const char* name, Problem& problem) noexcept {
  // The option of another kind deserves to be told apart from a misspelt one.
  unsigned count;
  const FilterOps* const* all = all_ops(count);
  for (unsigned i = 0; i < count; ++i)
    for (unsigned j = 0; j < all[i]->option_count; ++j)
      if (all[i] != ops && std::strcmp(all[i]->options[j].name, name) == 0) {
        problem.set(Error::unknown_name, "kind %s has no option \"%s\"",
                    ops != nullptr ? ops->name : "auto", name);
        return problem.add_hint("It is an option of kind %s.", all[i]->name);
      }
  problem.set(Error::unknown_name, "invalid option \"%s\"", Excerpt(name).text());
  NearestName nearest(name);
  char names[256] = "";
  std::size_t length = 0;
  const auto add = [&](const char* option) {
    nearest.consider(option);
    if (length < sizeof names)
      length += static_cast<std::size_t>(std::snprintf(names + length, sizeof names - length,
                                                       "%s%s", length > 0 ? ", " : "", option));
  };
  for (const char* option : kCommonOptions) add(option);
  for (unsigned i = 0; ops != nullptr && i < ops->option_count; ++i) add(ops->options[i].name);
  if (nearest.name() != nullptr)
    return problem.add_hint("Perhaps you meant the option \"%s\".", nearest.name());
  return problem.add_hint("Valid options are: %s.", names);
}

bool set_memory(Definition& definition, const char* value, Problem& problem) noexcept {
  std::uint64_t bytes;
  if (!parse_size(value, bytes)) {
    bad_value(problem, Error::syntax, "memory", value);
    return problem.add_hint("Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB.");
  }
  if (bytes > kMostMemory) {
    bad_range(problem, "memory", value, 1, kMostMemory);
    problem.error = Error::too_large;
    return false;
  }
  definition.parameters.memory = bytes;
  definition.memory_given = true;
  return true;
}

bool set_fpr(Definition& definition, const char* value, Problem& problem) noexcept {
  double fpr;
  if (!parse_real(value, fpr)) return bad_value(problem, Error::syntax, "fpr", value);
  if (!(fpr > 0 && fpr < 1)) {
    problem.set(Error::out_of_range, "value \"%s\" is out of range for option \"fpr\"",
                Excerpt(value).text());
    problem.add_detail("A false-positive rate lies between 0 and 1, both excluded.");
    return problem.add_hint("For one wrongly discarded row in a hundred new ones, write 0.01.");
  }
  definition.parameters.fpr = fpr;
  return true;
}

bool whole_number(const char* name, const char* value, double low, double high,
                  std::uint64_t& result, Problem& problem) noexcept {
  if (!parse_integer(value, result)) {
    double real;
    if (parse_real(value, real) && (real < low || real > high))
      return bad_range(problem, name, value, low, high);
    bad_value(problem, Error::syntax, name, value);
    return problem.add_hint("Give a whole number from %.15g to %.15g.", low, high);
  }
  if (static_cast<double>(result) < low || static_cast<double>(result) > high)
    return bad_range(problem, name, value, low, high);
  return true;
}

// 'S', or 'S,S2' for a diced filter.
bool set_slices(Definition& definition, const char* value, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  std::uint64_t slices, others = 1;
  const char* comma = std::strchr(value, ',');
  const std::size_t length =
      comma != nullptr ? static_cast<std::size_t>(comma - value) : std::strlen(value);
  if (length > Excerpt::kMost) return bad_value(problem, Error::syntax, "slices", value);
  const Excerpt first(value, length);
  if (comma == nullptr) {
    if (!whole_number("slices", value, 1, kMostSlices, slices, problem)) return false;
  } else {
    const char* second = comma + 1;
    while (*second == ' ') ++second;
    if (!whole_number("slices", first.text(), 1, kMostSlices, slices, problem) ||
        !whole_number("slices", second, 1, kMostSlices, others, problem))
      return false;
    if (slices * others > kMostSlices) return bad_range(problem, "slices", value, 1, kMostSlices);
  }
  p.slices = static_cast<std::uint32_t>(slices * others);
  p.slices2 = comma != nullptr ? static_cast<std::uint32_t>(others) : 0;
  definition.slices_given = true;
  return true;
}

// `slicing`, `dice`, `k1` and `k2`. `known` tells whether this was one.
bool set_placement(Definition& definition, const char* name, const char* value, bool& known,
                   Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  std::uint64_t number;
  if (std::strcmp(name, "slicing") == 0) {
    if (!find_choice(kSlicings, value, number)) return bad_choice(problem, name, value, kSlicings);
    p.slicing = static_cast<Slicing>(number);
    definition.slicing_given = true;
    return true;
  }
  if (std::strcmp(name, "dice") == 0) {
    if (!find_choice(kDices, value, number)) return bad_choice(problem, name, value, kDices);
    p.dice = static_cast<Dice>(number);
    definition.dice_given = true;
    return true;
  }
  if (std::strcmp(name, "k1") == 0 || std::strcmp(name, "k2") == 0) {
    if (!whole_number(name, value, 1, kMostPlaces, number, problem)) return false;
    (name[1] == '1' ? p.k1 : p.k2) = static_cast<std::uint8_t>(number);
    definition.places_given = true;
    return true;
  }
  known = false;
  return true;
}

// Options that every kind has. `known` tells whether this was one.
bool set_common_option(Definition& definition, const char* name, const char* value, bool& known,
                       Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  std::uint64_t number;
  known = true;
  if (std::strcmp(name, "kind") == 0) return set_kind(definition, value, problem);
  if (std::strcmp(name, "memory") == 0) return set_memory(definition, value, problem);
  if (std::strcmp(name, "fpr") == 0) return set_fpr(definition, value, problem);
  if (std::strcmp(name, "keys") == 0) {
    return whole_number(name, value, 1, kMostKeys, p.keys, problem);
  }
  if (std::strcmp(name, "seed") == 0) {
    if (!parse_integer(value, number)) return bad_value(problem, Error::syntax, name, value);
    p.seed = number;
    definition.seed_given = true;
    return true;
  }
  if (std::strcmp(name, "slices") == 0) return set_slices(definition, value, problem);
  if (std::strcmp(name, "nulls") == 0) {
    if (!find_choice(kNulls, value, number)) return bad_choice(problem, name, value, kNulls);
    p.nulls = static_cast<Nulls>(number);
    definition.nulls_given = true;
    return true;
  }
  if (std::strcmp(name, "layout") == 0) {
    if (!find_choice(kLayouts, value, number)) return bad_choice(problem, name, value, kLayouts);
    p.layout = static_cast<Layout>(number);
    definition.layout_given = true;
    return true;
  }
  return set_placement(definition, name, value, known, problem);
}

bool set_reals(Definition& definition, const OptionSpec& option, const char* value,
               Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  unsigned count = 0;
  for (const char* at = value;;) {
    const char* comma = std::strchr(at, ',');
    const char* end = comma != nullptr ? comma : at + std::strlen(at);
    while (at < end && *at == ' ') ++at;
    double real;
    const auto [stop, error] = std::from_chars(at, end, real);
    if (error != std::errc{} || stop != end)
      return bad_value(problem, Error::syntax, option.name, value);
    if (!(real >= option.low && real <= option.high))
      return bad_range(problem, option.name, value, option.low, option.high);
    if (count == option.max_count) {
      bad_value(problem, Error::out_of_range, option.name, value);
      return problem.add_detail("At most %u %s can be given.", option.max_count,
                                option.max_count == 1 ? "number" : "numbers");
    }
    p.set_real(option.slot + 1 + count++, real);
    if (comma == nullptr) break;
    at = comma + 1;
  }
  p.set_integer(option.slot, count);
  return true;
}

// '10 minutes', '90 s', '1000000 rows'.
bool set_span(Definition& definition, const OptionSpec& option, const char* value,
              Problem& problem) noexcept {
  struct Unit {
    const char* name;
    double microseconds;  // 0: rows
  };
  static constexpr Unit kUnits[] = {
      {"us", 1},        {"ms", 1e3},       {"s", 1e6},         {"second", 1e6},
      {"seconds", 1e6}, {"min", 60e6},     {"minute", 60e6},   {"minutes", 60e6},
      {"h", 3600e6},    {"hour", 3600e6},  {"hours", 3600e6},  {"d", 86400e6},
      {"day", 86400e6}, {"days", 86400e6}, {"week", 604800e6}, {"weeks", 604800e6},
      {"row", 0},       {"rows", 0},
  };
  const char* end = value + std::strlen(value);
  double amount;
  const auto [stop, error] = std::from_chars(value, end, amount);
  // Beyond 2^53 a double does not have every whole number.
  std::uint64_t whole = 0;
  const bool is_whole = std::from_chars(value, end, whole).ptr == stop;
  const char* unit = stop;
  while (*unit == ' ') ++unit;
  for (const Unit& known : kUnits) {
    if (error != std::errc{} || std::strcmp(known.name, unit) != 0) continue;
    const double size = known.microseconds > 0 ? known.microseconds : 1, scaled = amount * size;
    if (!(scaled >= option.low && scaled <= option.high)) break;
    definition.parameters.set_integer(option.slot,
                                      is_whole ? whole * static_cast<std::uint64_t>(size)
                                               : saturate<std::uint64_t>(std::round(scaled)));
    definition.parameters.set_integer(option.slot + 1, known.microseconds > 0 ? 0 : 1);
    return true;
  }
  bad_value(problem, Error::syntax, option.name, value);
  return problem.add_hint(
      "Give a time such as '10 minutes' or a number of rows such as "
      "'1000000 rows'.");
}

bool set_kind_option(Definition& definition, const OptionSpec& option, const char* value,
                     Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  std::uint64_t number;
  double real;
  switch (option.type) {
    case OptionType::integer:
      if (!whole_number(option.name, value, option.low, option.high, number, problem)) return false;
      p.set_integer(option.slot, number);
      break;
    case OptionType::real:
      if (!parse_real(value, real)) return bad_value(problem, Error::syntax, option.name, value);
      if (!(real >= option.low && real <= option.high))
        return bad_range(problem, option.name, value, option.low, option.high);
      p.set_real(option.slot, real);
      break;
    case OptionType::choice:
      if (!find_choice(option.choices, value, number))
        return bad_choice(problem, option.name, value, option.choices);
      p.set_integer(option.slot, number);
      break;
    case OptionType::reals:
      if (!set_reals(definition, option, value, problem)) return false;
      break;
    case OptionType::span:
      if (!set_span(definition, option, value, problem)) return false;
      break;
  }
  definition.given |= SlotSet{1} << option.slot;
  return true;
}

// How many slots the value of an option takes.
unsigned words_of(const Parameters& p, const OptionSpec& option) noexcept {
  switch (option.type) {
    case OptionType::span: return 2;
    case OptionType::reals:
      return 1 + static_cast<unsigned>(
                     std::min<std::uint64_t>(p.integer(option.slot), option.max_count));
    default: return 1;
  }
}

bool option_in_range(const Parameters& p, const OptionSpec& option) noexcept {
  const std::uint64_t word = p.integer(option.slot);
  const auto within = [&](double value) { return value >= option.low && value <= option.high; };
  switch (option.type) {
    case OptionType::integer: return within(static_cast<double>(word));
    case OptionType::real: return within(p.real(option.slot));
    case OptionType::span:
      return within(static_cast<double>(word)) && p.integer(option.slot + 1) <= 1;
    case OptionType::choice:
      for (std::uint64_t i = 0; option.choices[i] != nullptr; ++i)
        if (i == word) return true;
      return false;
    case OptionType::reals:
      if (word > option.max_count) return false;
      for (unsigned i = 0; i < word; ++i)
        if (!within(p.real(option.slot + 1 + i))) return false;
      return true;
  }
  return false;
}

// Lays out `memory` bytes and derives the kind's parameters for them.
bool derive_in_memory(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (!definition.slices_given) p.slices = default_slices(p.memory);
  const std::uint64_t least = sizeof(Header) + p.slices * kLeastSliceBytes;
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
  derive_places(p);
  return true;
}

bool keeps_fpr(const Definition& definition) noexcept {
  return find_ops(definition.parameters.kind)->fpr_bound(definition.parameters) <=
         definition.wanted_fpr();
}

// Does `keys` say, in a kind that keeps fpr anyway, how many keys shall be remembered? Others that
// forget would need out of all proportion.
bool remembers_keys(Kind kind) noexcept { return kind == Kind::clq; }

// Would the kind keep fpr in so much memory, and remember the keys?
bool suffices(Definition attempt, std::uint64_t memory) noexcept {
  Problem ignored;
  Parameters& p = attempt.parameters;
  p.memory = memory;
  return derive_in_memory(attempt, ignored) && keeps_fpr(attempt) &&
         (!remembers_keys(p.kind) || window_keys(p, kForgettable) >= static_cast<double>(p.keys));
}

// The least memory (to 1/64) that suffices for `keys` keys; 0: none.
std::uint64_t memory_for_keys(const Definition& definition) noexcept {
  const auto enough = [&](std::uint64_t memory) { return suffices(definition, memory); };
  std::uint64_t high = 1024;
  while (!enough(high)) {
    high *= 2;
    if (high > kMostMemory) return 0;
  }
  std::uint64_t low = high / 2;
  while (high - low > high / 64 && high - low > 64) {
    const std::uint64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return (high + 63) & ~std::uint64_t{63};
}

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

bool set_option(Definition& definition, const char* name, const char* value,
                Problem& problem) noexcept {
  bool known;
  if (!set_common_option(definition, name, value, known, problem)) return false;
  if (known) return true;
  const FilterOps* ops = definition.parameters.kind == Kind::automatic
                             ? kind_of_auto_option(name)
                             : find_ops(definition.parameters.kind);
  for (unsigned i = 0; ops != nullptr && i < ops->option_count; ++i)
    if (std::strcmp(ops->options[i].name, name) == 0)
      return set_kind_option(definition, ops->options[i], value, problem);
  return unknown_option(ops, name, problem);
}

bool complete(Definition& definition, Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  if (p.kind == Kind::automatic) choose_kind(definition);
  const FilterOps* ops = find_ops(p.kind);
  if (ops == nullptr) return problem.set(Error::unknown_name, "unknown kind of filter");
  if (p.layout == Layout::blocked && !ops->has_blocked_layout)
    return problem.set(Error::unsupported, "kind %s has no layout \"blocked\"", ops->name);
  if (!check_slicing(definition, *ops, problem)) return false;
  const bool promised = definition.given == 0 && p.keys > 0;
  if (!definition.memory_given) {
    const bool for_keys = p.keys > 0 && (!ops->keeps_fpr_forever || remembers_keys(p.kind) ||
                                         (promised && !suffices(definition, kDefaultMemory)));
    p.memory = for_keys ? memory_for_keys(definition) : kDefaultMemory;
    if (p.memory == 0) p.memory = promised ? kMostMemory : kDefaultMemory;
  }
  if (!derive_in_memory(definition, problem)) return false;
  if (promised && !keeps_fpr(definition)) return cannot_keep(definition, problem);
  return true;
}

std::uint32_t default_slices(std::uint64_t memory) noexcept {
  std::uint32_t slices = 1;
  while (slices < 64 && memory / (slices * 2) >= 65536) slices *= 2;
  return slices;
}

Definition definition_of(const Parameters& parameters) noexcept {
  Definition definition;
  definition.parameters = parameters;
  std::memset(definition.parameters.word, 0, sizeof definition.parameters.word);
  definition.memory_given = definition.slices_given = definition.layout_given = true;
  definition.seed_given = definition.nulls_given = true;
  definition.slicing_given = true;
  definition.dice_given = parameters.slicing == Slicing::diced;
  definition.places_given = parameters.slicing == Slicing::horizontal && parameters.k1 > 0;
  if (!definition.places_given) definition.parameters.k1 = definition.parameters.k2 = 0;
  const FilterOps* ops = find_ops(parameters.kind);
  for (unsigned i = 0; ops != nullptr && i < ops->option_count; ++i) {
    const OptionSpec& option = ops->options[i];
    if (!in_use(parameters, option)) continue;
    std::memcpy(&definition.parameters.word[option.slot], &parameters.word[option.slot],
                words_of(parameters, option) * sizeof *parameters.word);
    definition.given |= SlotSet{1} << option.slot;
  }
  return definition;
}

bool in_range(const Parameters& p) noexcept {
  const FilterOps* ops = find_ops(p.kind);
  if (ops == nullptr || p.layout > Layout::blocked || p.nulls > Nulls::not_distinct ||
      p.slices < 1 || p.slices > kMostSlices || p.memory > kMostMemory ||
      static_cast<double>(p.keys) > kMostKeys || !(p.fpr >= 0 && p.fpr < 1) || std::signbit(p.fpr))
    return false;
  if (p.slicing > Slicing::diced || p.dice > Dice::vh || p.k1 > kMostPlaces || p.k2 > kMostPlaces ||
      (p.slices2 > 0 && p.slices % p.slices2 != 0))
    return false;
  for (unsigned i = 0; i < ops->option_count; ++i)
    if (in_use(p, ops->options[i]) && !option_in_range(p, ops->options[i])) return false;
  return true;
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
    return problem.add_hint(
        "Values have the same seed unless told otherwise; give named filters "
        "that are to be merged the same option seed.");
  }
  Parameters other = b;
  other.keys = a.keys;
  other.fpr = a.fpr;
  other.nulls = a.nulls;
  if (std::memcmp(&a, &other, sizeof a) == 0) return true;
  problem.set(Error::mismatch, "filters with different parameters cannot be merged");
  char left[180], right[180];
  print_definition(a, left, sizeof left);
  print_definition(b, right, sizeof right);
  return problem.add_detail("One is %s, the other %s.", left, right);
}

}  // namespace streamfilter
