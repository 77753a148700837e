#include "core/filter/common_options.hpp"

#include <cstdio>

#include "core/filter/option_values.hpp"
#include "core/kind/kind_registry.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter {
namespace {

constexpr unsigned kMaxProbes = 64;

constexpr const char* kLayouts[] = {"scattered", "blocked", nullptr};
constexpr const char* kNulls[] = {"distinct", "not distinct", nullptr};
constexpr const char* kSlicings[] = {"horizontal", "vertical", "diced", nullptr};
constexpr const char* kDices[] = {"hv", "vh", nullptr};

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

bool set_keys(Definition& definition, const CommonOption& option, const char* value,
              Problem& problem) noexcept {
  return read_whole_number(option.name, value, option.low, option.high, definition.parameters.keys,
                           problem);
}

bool set_seed(Definition& definition, const CommonOption& option, const char* value,
              Problem& problem) noexcept {
  std::uint64_t seed;
  if (!parse_integer(value, seed)) return bad_value(problem, Error::syntax, option.name, value);
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

// Reads k1 or k2.
template <auto member>
bool set_probes(Definition& definition, const CommonOption& option, const char* value,
                Problem& problem) noexcept {
  std::uint64_t number;
  if (!read_whole_number(option.name, value, option.low, option.high, number, problem))
    return false;
  definition.parameters.*member = static_cast<std::uint8_t>(number);
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
  char slices[32];
  print_slices(p, slices, sizeof slices);
  out.add(slices);
}

template <auto... member>
constexpr OptionValue kValue = {
    [](Parameters& to, const Parameters& from) noexcept { ((to.*member = from.*member), ...); },
    [](const Parameters& a, const Parameters& b) noexcept {
      return ((a.*member == b.*member) && ...);
    }};

template <const char* const* choices, auto member>
void write_choice(TextWriter& out, const Parameters& p) noexcept {
  out.add(choices[static_cast<unsigned>(p.*member)]);
}

template <auto member>
void write_number(TextWriter& out, const Parameters& p) noexcept {
  out.add(std::uint64_t{p.*member});
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
    {
        .id = Common::keys,
        .name = "keys",
        .value = kValue<&Parameters::keys>,
        .low = 1,
        .high = kMaxKeys,
        .set = set_keys,
        .in_range = [](const Parameters& p) noexcept { return p.keys <= kMaxKeys; },
        .is_needed = [](const Parameters& p) noexcept { return p.keys > 0; },
        .write = write_number<&Parameters::keys>,
    },
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
    {
        .id = Common::nulls,
        .name = "nulls",
        .value = kValue<&Parameters::nulls>,
        .choices = kNulls,
        .set = set_choice<&Parameters::nulls>,
        .in_range = [](const Parameters& p) noexcept { return p.nulls <= Nulls::not_distinct; },
        .is_needed = [](const Parameters& p) noexcept { return p.nulls != Nulls::distinct; },
        .write = write_choice<kNulls, &Parameters::nulls>,
    },
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
    {
        .id = Common::layout,
        .name = "layout",
        .value = kValue<&Parameters::layout>,
        .choices = kLayouts,
        .set = set_choice<&Parameters::layout>,
        .in_range = [](const Parameters& p) noexcept { return p.layout <= Layout::blocked; },
        .is_needed = [](const Parameters& p) noexcept { return p.layout != Layout::scattered; },
        .write = write_choice<kLayouts, &Parameters::layout>,
    },
    {
        .id = Common::slicing,
        .name = "slicing",
        .value = kValue<&Parameters::slicing>,
        .choices = kSlicings,
        .set = set_choice<&Parameters::slicing>,
        .in_range = [](const Parameters& p) noexcept { return p.slicing <= Slicing::diced; },
        .is_needed = [](const Parameters& p) noexcept { return p.slicing != Slicing::horizontal; },
        .write = write_choice<kSlicings, &Parameters::slicing>,
    },
    {
        .id = Common::dice,
        .name = "dice",
        .value = kValue<&Parameters::dice>,
        .choices = kDices,
        .set = set_choice<&Parameters::dice>,
        .in_range = [](const Parameters& p) noexcept { return p.dice <= Dice::vh; },
        .is_needed = [](const Parameters& p) noexcept { return p.slicing == Slicing::diced; },
        .write = write_choice<kDices, &Parameters::dice>,
    },
    {
        .id = Common::k1,
        .name = "k1",
        .value = kValue<&Parameters::k1>,
        .low = 1,
        .high = kMaxProbes,
        .set = set_probes<&Parameters::k1>,
        .in_range = [](const Parameters& p) noexcept { return p.k1 <= kMaxProbes; },
        .is_needed = has_k1_k2,
        .write = write_number<&Parameters::k1>,
    },
    {
        .id = Common::k2,
        .name = "k2",
        .value = kValue<&Parameters::k2>,
        .low = 1,
        .high = kMaxProbes,
        .set = set_probes<&Parameters::k2>,
        .in_range = [](const Parameters& p) noexcept { return p.k2 <= kMaxProbes; },
        .is_needed = has_k1_k2,
        .write = write_number<&Parameters::k2>,
    },
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
  const bool two = parameters.slices2 > 0;
  out.add(std::uint64_t{two ? parameters.slices / parameters.slices2 : parameters.slices});
  if (!two) return;
  out.add(",");
  out.add(std::uint64_t{parameters.slices2});
}

}  // namespace streamfilter
