// The options that every kind has: one table for reading, printing, hints and checks.
#pragma once

#include "core/base/text.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

// A value, which may be several members of the parameters.
struct OptionValue {
  void (*copy)(Parameters& to, const Parameters& from) noexcept;
  bool (*is_same)(const Parameters&, const Parameters&) noexcept;
};

struct CommonOption {
  Common id;
  const char* name;
  OptionValue value;

  // For `choices` (ends with nullptr) or whole numbers from low to high.
  const char* const* choices = nullptr;
  double low = 0, high = 0;

  // Stores a value; set_option() notes that it was given. Errors: syntax, out_of_range;
  // unknown_name for a kind.
  bool (*set)(Definition&, const CommonOption&, const char* value, Problem&) noexcept;

  // Do the parameters hold a value that `set` could store? Safe on any bytes.
  bool (*in_range)(const Parameters&) noexcept;

  // Must the definition of complete parameters name the option? False if leaving it out means the
  // same.
  bool (*is_needed)(const Parameters&) noexcept;

  // Writes the value as `set` reads it.
  void (*write)(TextWriter&, const Parameters&) noexcept;
};

constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 46;
constexpr std::uint64_t kMaxKeys = 1'000'000'000'000'000;

constexpr unsigned kCommonOptionCount = 12;
// In the order of hints.
extern const CommonOption kCommonOptions[kCommonOptionCount];

// Sets of them. Requests hold while the geometry stays as it is; from the others it follows.
constexpr std::uint32_t kAllCommon = (std::uint32_t{1} << kCommonOptionCount) - 1;
constexpr std::uint32_t kRequests = set_of(Common::keys, Common::fpr, Common::nulls, Common::seed);
constexpr std::uint32_t kGeometry = kAllCommon & ~kRequests;
// What complete parameters always say, however they are sliced.
constexpr std::uint32_t kCompleteCommon = kAllCommon &
                                          ~set_of(Common::kind, Common::keys, Common::fpr) &
                                          ~set_of(Common::dice, Common::k1, Common::k2);

constexpr bool contains(std::uint32_t options, Common id) noexcept {
  return (options & set_of(id)) != 0;
}

const CommonOption& find_common(Common id) noexcept;

// The first of some options whose values differ; nullptr: none does.
const CommonOption* find_difference(const Parameters& a, const Parameters& b,
                                    std::uint32_t options) noexcept;

void copy_options(Parameters& to, const Parameters& from, std::uint32_t options) noexcept;

// Has the definition its own value for the option?
bool has_value(const Definition& definition, Common id) noexcept;

constexpr std::uint32_t kMaxSlices = 65536;

// Default number of slices: enough that sessions rarely meet, none below 64 kB.
std::uint32_t default_slices(std::uint64_t memory) noexcept;

// Prints option `slices`: 'S', or 'S,S2' for a diced filter. `size` of at least 32 is enough.
void print_slices(const Parameters& parameters, char* buffer, std::size_t size) noexcept;

}  // namespace streamfilter
