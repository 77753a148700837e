// Decimal numbers as text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"

namespace streamfilter {

// The hash of a decimal number, equal to that of the server's numeric. Reads what numeric_in reads:
// a sign, digits with or without a point, an exponent; NaN, Infinity or inf. Errors: syntax;
// out_of_range for numbers that numeric cannot hold.
bool hash_decimal_text(const char* text, std::size_t length, std::uint64_t seed,
                       std::uint64_t& hash, Problem& problem) noexcept;

}  // namespace streamfilter
