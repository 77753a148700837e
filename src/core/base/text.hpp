// Text: its characters, and a writer into a buffer of fixed size.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>

namespace streamfilter {

inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Of ASCII; other characters stay.
inline char to_lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Appends text to a buffer; what does not fit is cut.
class TextWriter {
 public:
  TextWriter(char* buffer, std::size_t size) noexcept : buffer_(buffer), size_(size) {
    if (size_ > 0) buffer_[0] = '\0';
  }

  void add(const char* text) noexcept {
    for (; *text != '\0' && length_ + 1 < size_; ++text) buffer_[length_++] = *text;
    if (size_ > 0) buffer_[length_] = '\0';
  }

  void add(std::uint64_t number) noexcept { add_number(number); }

  // The shortest text that reads back as the same number.
  void add(double number) noexcept { add_number(number); }

  std::size_t length() const noexcept { return length_; }

 private:
  template <typename Number>
  void add_number(Number number) noexcept {
    char text[40] = {};
    *std::to_chars(text, text + sizeof text - 1, number).ptr = '\0';
    add(text);
  }

  char* buffer_;
  std::size_t size_;
  std::size_t length_ = 0;
};

}  // namespace streamfilter
