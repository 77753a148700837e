// Definitions as text: `sbf(memory=64kB, fpr=0.01)`.
#pragma once

#include <cstddef>

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

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

}  // namespace streamfilter
