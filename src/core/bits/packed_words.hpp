// An array of numbers of 1 to 64 bits each, packed without gaps, of a width known at run time.
#pragma once

#include <cstdint>
#include <cstring>

namespace streamfilter {

// Number i lies in bits first_bit + i*width … of the body, counted from the lowest bit of the first
// byte. Numbers are read eight or nine bytes at a time: kSlack bytes behind the last must exist.
// `Byte` is const-qualified for reading.
template <typename Byte = unsigned char>
class PackedWords {
 public:
  static constexpr std::uint64_t kSlack = 8;

  PackedWords(Byte* body, std::uint64_t first_bit, unsigned width) noexcept
      : body_(body),
        first_bit_(first_bit),
        width_(width),
        largest_(~std::uint64_t{0} >> (64 - width)) {}

  std::uint64_t get(std::uint64_t i) const noexcept {
    const std::uint64_t bit = first_bit_ + i * width_;
    const Byte* at = body_ + (bit >> 3);
    const unsigned shift = bit & 7;
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word >>= shift;
    if (shift + width_ > 64) word |= static_cast<std::uint64_t>(at[8]) << (64 - shift);
    return word & largest_;
  }

  void set(std::uint64_t i, std::uint64_t value) const noexcept {
    const std::uint64_t bit = first_bit_ + i * width_;
    Byte* at = body_ + (bit >> 3);
    const unsigned shift = bit & 7;
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word = (word & ~(largest_ << shift)) | value << shift;
    std::memcpy(at, &word, 8);
    if (shift + width_ > 64) {
      const unsigned done = 64 - shift;
      at[8] = static_cast<unsigned char>((at[8] & ~(largest_ >> done)) | value >> done);
    }
  }

 private:
  Byte* body_;
  std::uint64_t first_bit_;
  unsigned width_;
  std::uint64_t largest_;
};

// The bits that number 0 … largest need.
constexpr unsigned bit_width(std::uint64_t largest) noexcept {
  unsigned bits = 1;
  while (largest >>= 1) ++bits;
  return bits;
}

}  // namespace streamfilter
