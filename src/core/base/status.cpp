#include "core/base/status.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace streamfilter {
static bool continues_character(char byte) noexcept { return (byte & 0xc0) == 0x80; }

static std::size_t cut_utf8(const char* text, std::size_t length, std::size_t most) noexcept {
  if (length <= most) return length;
  std::size_t end = most;
  while (end > 0 && most - end < 3 && continues_character(text[end])) --end;
  return continues_character(text[end]) ? most : end;  // not UTF-8
}

static CutText cut_text = cut_utf8;

// Cuts what does not fit, between characters.
template <std::size_t size>
__attribute__((format(printf, 2, 0))) void print(char (&buffer)[size], const char* format,
                                                 va_list arguments) noexcept {
  const int length = std::vsnprintf(buffer, size, format, arguments);
  if (length >= static_cast<int>(size)) buffer[cut_text(buffer, size - 1, size - 2)] = '\0';
}

void set_cut_text(CutText cut) noexcept { cut_text = cut; }

Excerpt::Excerpt(const char* text) noexcept : Excerpt(text, std::strlen(text)) {}

Excerpt::Excerpt(const char* text, std::size_t length, std::size_t most) noexcept {
  const std::size_t whole = cut_text(text, length, std::min(most, kMax));
  std::memcpy(text_, text, whole);
  text_[whole] = '\0';
}

bool Problem::set(Error what, const char* format, ...) noexcept {
  error = what;
  detail[0] = hint[0] = '\0';
  va_list arguments;
  va_start(arguments, format);
  print(message, format, arguments);
  va_end(arguments);
  return false;
}

bool Problem::add_detail(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  print(detail, format, arguments);
  va_end(arguments);
  return false;
}

bool Problem::add_hint(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  print(hint, format, arguments);
  va_end(arguments);
  return false;
}

}  // namespace streamfilter
