#include "core/filter/common_options.hpp"

#include <cstdio>

#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"

namespace streamfilter {
namespace {

constexpr unsigned kMaxProbes = 64;

// ---- setting

bool set_kind(Definition& definition, const CommonOption&, const char* value,
              Problem& problem) noexcept {
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
  for (const FilterOps* ops : all_ops()) nearest.consider(ops->name);
  char names[256];
  list_kinds([](const FilterOps&) { return true; }, names, sizeof names);
  if (nearest.name() != nullptr)
    return problem.add_hint("Perhaps you meant \"%s\". Valid kinds are: auto, %s.", nearest.name(),
                            names);
  return problem.add_hint("Valid kinds are: auto, %s.", names);
}

bool set_memory(Definition& definition, const CommonOption&, const char* value,
                Problem& problem) noexcept {
  std::uint64_t bytes;
  if (!parse_size(value, bytes)) {
    bad_value(problem, Error::syntax, "memory", value);
    return problem.add_hint("Give a number of bytes, or a number with a unit: B, kB, MB, GB, TB.");
  }
  if (bytes > kMaxMemory) {
    bad_range(problem, "memory", value, 1, kMaxMemory);
    problem.error = Error::too_large;
    return false;
  }
  definition.parameters.memory = bytes;
  return true;
}

bool set_fpr(Definition& definition, const CommonOption&, const char* value,
             Problem& problem) noexcept {
  double fpr;
  if (!parse_real(value, fpr)) {
    bad_value(problem, Error::syntax, "fpr", value);
    const auto [stop, error] = std::from_chars(value, value + std::strlen(value), fpr);
    if (error == std::errc{} && *stop == '%' && fpr > 0 && fpr < 100)
      return problem.add_hint("Write %.15g.", fpr / 100);
    return problem.add_hint(
        "Give a number between 0 and 1: 0.01 for one wrongly discarded row in a hundred new ones.");
  }
  if (!(fpr > 0 && fpr < 1)) {
    problem.set(Error::out_of_range, "value \"%s\" is out of range for option \"fpr\"",
                Excerpt(value).text());
    problem.add_detail("A false-positive rate lies between 0 and 1, both excluded.");
    return problem.add_hint("For one wrongly discarded row in a hundred new ones, write 0.01.");
  }
  definition.parameters.fpr = fpr;
  return true;
}

bool set_seed(Definition& definition, const CommonOption& option, const char* value,
              Problem& problem) noexcept {
  std::uint64_t seed;
  if (!parse_integer(value, seed)) {
    bad_value(problem, Error::syntax, option.name, value);
    return problem.add_hint("Give a whole number, or leave it out: it is then drawn.");
  }
  definition.parameters.seed = seed;
  return true;
}

// 'S', or 'S,S2' for a diced filter.
bool set_slices(Definition& definition, const CommonOption&, const char* value,
                Problem& problem) noexcept {
  Parameters& p = definition.parameters;
  std::uint64_t slices, others = 1;
  const char* comma = std::strchr(value, ',');
  const std::size_t length =
      comma != nullptr ? static_cast<std::size_t>(comma - value) : std::strlen(value);
  if (length > Excerpt::kMax) return bad_value(problem, Error::syntax, "slices", value);
  const Excerpt first(value, length);
  if (comma == nullptr) {
    if (!read_whole_number("slices", value, 1, kMaxSlices, slices, problem)) return false;
  } else {
    const char* second = comma + 1;
    while (*second == ' ') ++second;
    if (!read_whole_number("slices", first.text(), 1, kMaxSlices, slices, problem) ||
        !read_whole_number("slices", second, 1, kMaxSlices, others, problem))
      return false;
    if (slices * others > kMaxSlices) return bad_range(problem, "slices", value, 1, kMaxSlices);
  }
  p.slices = static_cast<std::uint32_t>(slices * others);
  p.slices2 = comma != nullptr ? static_cast<std::uint32_t>(others) : 0;
  return true;
}

// Reads one of a list of words.
template <auto member>
bool set_choice(Definition& definition, const CommonOption& option, const char* value,
                Problem& problem) noexcept {
  std::uint64_t number;
  if (!read_choice(option.name, value, option.choices, number, problem)) return false;
  auto& target = definition.parameters.*member;
  target = static_cast<std::remove_reference_t<decltype(target)>>(number);
  return true;
}

// Reads a whole number.
template <auto member>
bool set_number(Definition& definition, const CommonOption& option, const char* value,
                Problem& problem) noexcept {
  std::uint64_t number;
  if (!read_whole_number(option.name, value, option.low, option.high, number, problem))
    return false;
  auto& target = definition.parameters.*member;
  target = static_cast<std::remove_reference_t<decltype(target)>>(number);
  return true;
}

// ---- printing

// Only one of the ways to say a slicing may be used.
bool has_k1_k2(const Parameters& p) noexcept {
  return p.slicing == Slicing::horizontal && p.k1 > 0;
}

void write_kind(TextWriter& out, const Parameters& p) noexcept {
  out.add(p.kind == Kind::automatic ? "auto" : find_ops(p.kind)->name);
}

void write_memory(TextWriter& out, const Parameters& p) noexcept {
  char size[32];
  print_size(p.memory, size, sizeof size);
  out.add(size);
}

void write_slices(TextWriter& out, const Parameters& p) noexcept {
  out.add(std::uint64_t{p.slices2 > 0 ? p.slices / p.slices2 : p.slices});
  if (p.slices2 == 0) return;
  out.add(",");
  out.add(std::uint64_t{p.slices2});
}

template <auto... member>
constexpr OptionValue kValue = {
    [](Parameters& to, const Parameters& from) noexcept { ((to.*member = from.*member), ...); },
    [](const Parameters& a, const Parameters& b) noexcept {
      return ((a.*member == b.*member) && ...);
    }};

template <auto member>
void write_number(TextWriter& out, const Parameters& p) noexcept {
  out.add(std::uint64_t{p.*member});
}

// ---- rows of the table

bool is_diced(const Parameters& p) noexcept { return p.slicing == Slicing::diced; }

template <auto member>
std::uint64_t number_of(const Parameters& p) noexcept {
  return static_cast<std::uint64_t>(p.*member);
}

template <auto member>
bool is_not_first(const Parameters& p) noexcept {
  return number_of<member>(p) != 0;
}

// An option that is a word of an enum.
template <const auto& words, auto member>
constexpr CommonOption word_option(
    Common id, const char* name,
    bool (*is_needed)(const Parameters&) noexcept = is_not_first<member>) noexcept {
  return {
      .id = id,
      .name = name,
      .value = kValue<member>,
      .choices = words,
      .set = set_choice<member>,
      .in_range =
          [](const Parameters& p) noexcept { return number_of<member>(p) < std::size(words) - 1; },
      .is_needed = is_needed,
      .write = [](TextWriter& out,
                  const Parameters& p) noexcept { out.add(words[number_of<member>(p)]); },
  };
}

// A whole number; 0: not given.
template <auto member, std::uint64_t most>
constexpr CommonOption number_option(
    Common id, const char* name,
    bool (*is_needed)(const Parameters&) noexcept = is_not_first<member>) noexcept {
  return {
      .id = id,
      .name = name,
      .value = kValue<member>,
      .low = 1,
      .high = to_real(most),
      .set = set_number<member>,
      .in_range = [](const Parameters& p) noexcept { return p.*member <= most; },
      .is_needed = is_needed,
      .write = write_number<member>,
  };
}

}  // namespace

const CommonOption kCommonOptions[kCommonOptionCount] = {
    {
        .id = Common::kind,
        .name = "kind",
        .value = kValue<&Parameters::kind>,
        .set = set_kind,
        .in_range = [](const Parameters& p) noexcept { return find_ops(p.kind) != nullptr; },
        .is_needed = [](const Parameters&) noexcept { return true; },
        .write = write_kind,
    },
    {
        .id = Common::memory,
        .name = "memory",
        .value = kValue<&Parameters::memory>,
        .set = set_memory,
        .in_range = [](const Parameters& p) noexcept { return p.memory <= kMaxMemory; },
        .is_needed = [](const Parameters&) noexcept { return true; },
        .write = write_memory,
    },
    number_option<&Parameters::keys, kMaxKeys>(Common::keys, "keys"),
    {
        .id = Common::fpr,
        .name = "fpr",
        .value = kValue<&Parameters::fpr>,
        .set = set_fpr,
        .in_range =
            [](const Parameters& p) noexcept {
              return p.fpr >= 0 && p.fpr < 1 && !std::signbit(p.fpr);
            },
        .is_needed = [](const Parameters& p) noexcept { return p.fpr > 0; },
        .write = [](TextWriter& out, const Parameters& p) noexcept { out.add(p.fpr); },
    },
    {
        .id = Common::seed,
        .name = "seed",
        .value = kValue<&Parameters::seed>,
        .set = set_seed,
        .in_range = [](const Parameters&) noexcept { return true; },
        .is_needed = [](const Parameters& p) noexcept { return p.seed != 0; },
        .write = write_number<&Parameters::seed>,
    },
    word_option<kNullsWords, &Parameters::nulls>(Common::nulls, "nulls"),
    {
        .id = Common::slices,
        .name = "slices",
        .value = kValue<&Parameters::slices, &Parameters::slices2>,
        .set = set_slices,
        .in_range =
            [](const Parameters& p) noexcept {
              return p.slices >= 1 && p.slices <= kMaxSlices &&
                     (p.slices2 == 0 || p.slices % p.slices2 == 0);
            },
        .is_needed =
            [](const Parameters& p) noexcept {
              return p.slicing == Slicing::diced || p.slices != default_slices(p.memory);
            },
        .write = write_slices,
    },
    word_option<kLayoutWords, &Parameters::layout>(Common::layout, "layout"),
    word_option<kSlicingWords, &Parameters::slicing>(Common::slicing, "slicing"),
    word_option<kDiceWords, &Parameters::dice>(Common::dice, "dice", is_diced),
    number_option<&Parameters::k1, kMaxProbes>(Common::k1, "k1", has_k1_k2),
    number_option<&Parameters::k2, kMaxProbes>(Common::k2, "k2", has_k1_k2),
};

const CommonOption& find_common(Common id) noexcept {
  return *std::find_if(kCommonOptions, kCommonOptions + kCommonOptionCount,
                       [=](const CommonOption& option) { return option.id == id; });
}

const CommonOption* find_difference(const Parameters& a, const Parameters& b,
                                    std::uint32_t options) noexcept {
  for (const CommonOption& option : kCommonOptions)
    if (contains(options, option.id) && !option.value.is_same(a, b)) return &option;
  return nullptr;
}

void copy_options(Parameters& to, const Parameters& from, std::uint32_t options) noexcept {
  for (const CommonOption& option : kCommonOptions)
    if (contains(options, option.id)) option.value.copy(to, from);
}

bool has_value(const Definition& definition, Common id) noexcept {
  const Parameters& p = definition.parameters;
  switch (id) {
    case Common::kind: return true;
    case Common::keys: return p.keys > 0;
    case Common::fpr: return p.fpr > 0;
    case Common::k1: return p.k1 > 0;
    case Common::k2: return p.k2 > 0;
    default: return definition.is_given(id);
  }
}

std::uint32_t default_slices(std::uint64_t memory) noexcept {
  std::uint32_t slices = 1;
  while (slices < 64 && memory / (slices * 2) >= 65536) slices *= 2;
  return slices;
}

void print_slices(const Parameters& parameters, char* buffer, std::size_t size) noexcept {
  TextWriter out(buffer, size);
  write_slices(out, parameters);
}

}  // namespace streamfilter
