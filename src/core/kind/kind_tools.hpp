// What several kinds need: rows of their options, and looks at their bytes.
#pragma once

#include <algorithm>

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

constexpr OptionSpec integer_option(unsigned word, const char* name, double low, double high,
                                    Share share = Share::none) noexcept {
  return {word, name, OptionType::integer, low, high, nullptr, 0, share};
}

// A span of time or rows.
constexpr OptionSpec span_option(unsigned word, const char* name,
                                 Share share = Share::none) noexcept {
  return {word, name, OptionType::span, 1, 1e18, nullptr, 0, share};
}

inline bool needs_option(const char* what, const char* other, const char* hint,
                         Problem& problem) noexcept {
  problem.set(Error::conflict, "%s needs option %s", what, other);
  return problem.add_hint("%s", hint);
}
inline bool needs_window(const char* what, Problem& problem) noexcept {
  return needs_option(what, "window", "For example: window '10 minutes', or window '1000000 rows'.",
                      problem);
}

// Options of kinds that grow by further filters.
inline constexpr const char* kGrows[] = {"none", "density", "cardinality", nullptr};
constexpr OptionSpec grow_option(unsigned word) noexcept {  // none: it was not given
  return {word, "grow", OptionType::choice, 1, 2, kGrows};
}
inline bool limit_needs_grow(Problem& problem) noexcept {
  return needs_option("option limit", "grow", "It is the load at which the next filter is opened.",
                      problem);
}

// The mean of count(i) for i < `all`, from an even sample: a slice's part of `most`.
template <typename Count>
double sample_mean(const Parameters& p, std::uint64_t all, std::uint64_t most,
                   Count&& count) noexcept {
  const std::uint64_t looks = std::min(all, std::max<std::uint64_t>(most / p.slices, 1));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < looks; ++i) sum += count(i * all / looks);
  return to_real(sum) / to_real(looks);
}

inline bool is_zero(const unsigned char* bytes, const unsigned char* end) noexcept {
  return std::all_of(bytes, end, [](unsigned char byte) { return byte == 0; });
}

}  // namespace streamfilter
