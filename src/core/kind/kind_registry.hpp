// The kinds by number and by name.
#pragma once

#include "core/kind/filter_kind.hpp"

namespace streamfilter {

// The row of a kind; nullptr for Kind::automatic and unknown numbers. Runs for every element.
struct OpsByNumber {
  const FilterOps* of[256];
};
extern const OpsByNumber kOpsByNumber;
inline const FilterOps* find_ops(Kind kind) noexcept {
  return kOpsByNumber.of[static_cast<unsigned char>(kind)];
}
const FilterOps* find_ops(const char* name) noexcept;

// The options of a kind; none for nullptr.
std::span<const OptionSpec> options_of(const FilterOps* ops) noexcept;

inline bool uses_importance(const Parameters& parameters) noexcept {
  const auto uses = find_ops(parameters.kind)->uses_importance;
  return uses != nullptr && uses(parameters);
}

inline bool uses_time(const Parameters& parameters) noexcept {
  const auto uses = find_ops(parameters.kind)->uses_time;
  return uses != nullptr && uses(parameters);
}

inline bool learns_from_repeats(const Parameters& parameters) noexcept {
  const auto learns = find_ops(parameters.kind)->learns_from_repeats;
  return learns != nullptr && learns(parameters);
}

inline WindowTicks window_of(const Parameters& parameters) noexcept {
  const auto window = find_ops(parameters.kind)->window;
  return window != nullptr ? window(parameters) : WindowTicks{};
}

// True if time, or the number of other keys, can make the filter forget a key.
inline bool keys_expire(const Parameters& parameters) noexcept {
  const WindowTicks window = window_of(parameters);
  return window.length != 0 || window.rows != 0;
}

// All rows, for tests and listings.
std::span<const FilterOps* const> all_ops() noexcept;

// Lists the names of the kinds that are `wanted` ("bloom, sbf"). Returns the length.
std::size_t list_kinds(bool (*wanted)(const FilterOps&), char* buffer, std::size_t size) noexcept;

}  // namespace streamfilter
