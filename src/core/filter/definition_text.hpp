// Definitions as text: `sbf(memory=64kB, fpr=0.01)`.
#pragma once

#include "core/filter/common_options.hpp"
#include "core/filter/derivation.hpp"
#include "core/filter/option_values.hpp"
#include "core/filter/options.hpp"
#include "core/filter/promise.hpp"

namespace streamfilter {

// Reads `kind(option=value, …)`; stops behind the closing parenthesis and stores in `used` how many
// characters were read. Errors: syntax, and those of set_option.
bool parse_definition(const char* text, std::size_t length, Definition& definition,
                      std::size_t& used, Problem& problem) noexcept;

// Longest text print_definition writes, with its final zero.
constexpr std::size_t kMaxDefinitionText = 2048;

// Prints complete parameters as `kind(option=value, …)`; reading that back gives them again.
// Returns the length.
std::size_t print_definition(const Parameters& parameters, char* buffer, std::size_t size) noexcept;

// Turns a user's request into the parameters of a filter.

// Derives everything not given: the kind, if it is `auto`, and the rest (derive_parameters).
bool complete(Definition& definition, Problem& problem) noexcept;

// Can the filters be merged: same kind, shape, seed and parameters? Ignores `nulls`, and the
// requests `keys` and `fpr`.
bool mergeable(const Parameters& a, const Parameters& b, Problem& problem) noexcept;

}  // namespace streamfilter
