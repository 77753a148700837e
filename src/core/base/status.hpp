// Errors that cost nothing to carry: no heap, no exceptions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace streamfilter {

// What %llu prints.
template <typename Number>
constexpr unsigned long long llu(Number number) noexcept {
  return static_cast<unsigned long long>(number);
}

// Each value names a class of error; the host maps it to its own codes (SQLSTATE).
enum class Error : std::uint8_t {
  none,
  syntax,         // text that cannot be read
  unknown_name,   // no such kind or option
  out_of_range,   // a value outside its range
  conflict,       // options that contradict each other, or a promise that cannot be kept
  too_small,      // memory that cannot hold the kind
  too_large,      // sizes past what can be addressed
  mismatch,       // two filters that cannot be merged
  unsupported,    // an operation this kind does not have
  corrupt,        // bytes that are not a filter
  newer_version,  // bytes of a later format
};

// Number of bytes of a text, at most `most`, that are whole characters. UTF-8, unless the host sets
// another function before all other calls.
using CutText = std::size_t (*)(const char* text, std::size_t length, std::size_t most) noexcept;
void set_cut_text(CutText cut) noexcept;

// The beginning of a foreign text, short enough to quote in a message.
class Excerpt {
 public:
  static constexpr std::size_t kMax = 80;  // bytes

  explicit Excerpt(const char* text) noexcept;
  Excerpt(const char* text, std::size_t length, std::size_t most = kMax) noexcept;

  const char* text() const noexcept { return text_; }

 private:
  char text_[kMax + 1];
};

// A problem and its explanation, in the host's message style: primary message without a full stop,
// detail and hint as sentences.
struct Problem {
  Error error = Error::none;
  char message[256] = "";
  char detail[384] = "";
  char hint[384] = "";

  explicit operator bool() const noexcept { return error != Error::none; }

  // Sets the error and its message (printf format). Returns false, so that a check can end with it.
  // Quote foreign texts by Excerpt.
  bool set(Error what, const char* format, ...) noexcept __attribute__((format(printf, 3, 4)));
  bool add_detail(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
  bool add_hint(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
};

}  // namespace streamfilter
