// Text: its characters, and a writer into a buffer of fixed size.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include "core/base/status.hpp"

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

// The words of an enum, in the order of its values, which begin with 0; ends with nullptr.
using WordList = const char* const*;
inline constexpr const char* kNoWords[] = {nullptr};

// The number of a word; -1: it is none of them.
inline int find_word(WordList words, const char* word) noexcept {
  for (int i = 0; words[i] != nullptr; ++i)
    if (std::strcmp(words[i], word) == 0) return i;
  return -1;
}

// The row of a table that has this name; nullptr: there is none.
template <typename Rows>
auto find_named(const Rows& rows, const char* name) noexcept -> decltype(&*std::begin(rows)) {
  for (const auto& row : rows)
    if (std::strcmp(row.name, name) == 0) return &row;
  return nullptr;
}

// Appends "one, two, three".
inline void add_words(TextWriter& out, WordList words) noexcept {
  for (int i = 0; words[i] != nullptr; ++i) {
    out.add(i > 0 ? ", " : "");
    out.add(words[i]);
  }
}

// "Perhaps you meant …": the known name nearest to a misspelt one.

// Remembers the candidate with the least Levenshtein distance, if that is small enough to be a
// typo.
class NearestName {
 public:
  explicit NearestName(const char* wanted) noexcept
      : wanted_(wanted), length_(std::min(std::strlen(wanted), kMaxLength)) {}

  void consider(const char* candidate) noexcept {
    const std::size_t distance = distance_to(candidate);
    if (distance < least_ && distance <= 1 + length_ / 3) {
      least_ = distance;
      name_ = candidate;
    }
  }

  // nullptr: nothing is near.
  const char* name() const noexcept { return name_; }

 private:
  static constexpr std::size_t kMaxLength = 63;

  std::size_t distance_to(const char* candidate) const noexcept {
    std::size_t row[kMaxLength + 1];
    for (std::size_t j = 0; j <= length_; ++j) row[j] = j;
    for (std::size_t i = 0; candidate[i] != '\0'; ++i) {
      std::size_t diagonal = row[0];
      row[0] = i + 1;
      for (std::size_t j = 0; j < length_; ++j) {
        const std::size_t replaced = diagonal + (candidate[i] != wanted_[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
      }
    }
    return row[length_];
  }

  const char* wanted_;
  std::size_t length_;
  std::size_t least_ = kMaxLength;
  const char* name_ = nullptr;
};

// Base64 (RFC 4648, section 4) without line breaks.

constexpr std::size_t base64_length(std::size_t bytes) noexcept { return (bytes + 2) / 3 * 4; }

// Writes base64_length(count) characters and no final zero.
void encode_base64(const void* bytes, std::size_t count, char* text) noexcept;

// Reads base64_length(count) characters. False if they are not the base64 of `count` bytes.
bool decode_base64(const char* text, void* bytes, std::size_t count) noexcept;

// Decimal numbers as text.

// The hash of a decimal number, equal to that of the server's numeric. Reads what numeric_in reads:
// a sign, digits with or without a point, an exponent; NaN, Infinity or inf. Errors: syntax;
// out_of_range for numbers that numeric cannot hold.
bool hash_decimal_text(const char* text, std::size_t length, std::uint64_t seed,
                       std::uint64_t& hash, Problem& problem) noexcept;

}  // namespace streamfilter
