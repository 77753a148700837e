// In some kinds a key uses one line of 64 bytes and its slice's counters, and nothing else,
// whatever is done with it: such a slice can be used before all of its lines are there.
#pragma once

#include "core/format/layout.hpp"

namespace streamfilter {

// Is the filter so? `state`: of one of its slices.
bool uses_one_line(const Parameters& parameters, const SliceState& state) noexcept;

// Bytes from the start of its slice to a key's line.
std::uint64_t line_of_key(const Header* header, std::uint64_t hash) noexcept;

}  // namespace streamfilter
