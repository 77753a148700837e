// Decimal numbers as text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"

namespace streamfilter {

// The hash of a decimal number as numeric_in reads it: a sign, digits with or without a point, an
// exponent; NaN, Infinity or inf. The same as of the server's numeric. Errors: syntax; out_of_range
// for what numeric cannot hold.
bool hash_decimal_text(const char* text, std::size_t length, std::uint64_t seed,
                       std::uint64_t& hash, Problem& problem) noexcept;

}  // namespace streamfilter
