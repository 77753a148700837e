#pragma once

#include <bit>

inline int pg_leftmost_one_pos32(std::uint32_t word) { return std::bit_width(word) - 1; }
inline int pg_rightmost_one_pos32(std::uint32_t word) { return std::countr_zero(word); }
