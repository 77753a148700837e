// Spans of time as text.
#pragma once

#include "core/base/text.hpp"

namespace streamfilter {

// Reads amounts with a unit and clocks: '90 s', '10 minutes', '1.5 hours', '1 day 02:30', '00:10'.
// A day has 24 hours, a month 30 days, a year 12 months, as where PostgreSQL compares intervals.
// False: it is none. In microseconds, rounded; what is longer than kLongestSpan becomes that.
constexpr std::int64_t kLongestSpan = std::int64_t{1} << 62;
bool parse_time_span(const char* text, std::int64_t& microseconds) noexcept;

// In the largest unit that divides it, such that parse_time_span reads the same.
void write_time_span(TextWriter& out, std::uint64_t microseconds) noexcept;

}  // namespace streamfilter
