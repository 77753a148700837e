// Characters of text that is read.
#pragma once

namespace streamfilter {

inline bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// How much of text a message quotes: up to 30 bytes, no character of UTF-8 cut apart.
inline int shown_length(const char* text, const char* end) noexcept {
  constexpr int kShown = 30;
  if (end - text <= kShown) return static_cast<int>(end - text);
  int length = kShown;
  while (length > 0 && (text[length] & 0xC0) == 0x80) --length;
  return length;
}

}  // namespace streamfilter
