// Is this UTF-8, as PostgreSQL takes it? No zero bytes, surrogates or overlong forms.
#pragma once

#include <cstddef>

namespace fuzz {

inline std::size_t length_of_character(const unsigned char* at, std::size_t left) {
  const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
    return i < left && at[i] >= low && at[i] <= high;
  };
  const unsigned first = at[0];
  if (first >= 1 && first <= 0x7f) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) &&
                   follows(2, 0x80, 0xbf)
               ? 3
               : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) &&
                   follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf)
               ? 4
               : 0;
  return 0;
}

inline bool is_utf8(const char* text, std::size_t size) {
  const auto* at = reinterpret_cast<const unsigned char*>(text);
  for (std::size_t i = 0; i < size;) {
    const std::size_t length = length_of_character(at + i, size - i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace fuzz
