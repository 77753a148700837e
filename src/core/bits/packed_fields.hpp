// Fields of any width up to 57 bits at any bit of a body.
#pragma once

#include <cstdint>
#include <cstring>

namespace streamfilter {

// The lowest `count` bits, 0..64.
constexpr std::uint64_t low_bits(unsigned count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Bits are counted from the lowest bit of the first byte. `Byte` is const-qualified for reading.
template <typename Byte = unsigned char>
class PackedFields {
 public:
  static constexpr unsigned kMaxBits = 57;

  // `bytes` is at least 8.
  PackedFields(Byte* body, std::uint64_t bytes) noexcept : body_(body), last_word_(bytes - 8) {}

  std::uint64_t get(std::uint64_t bit, unsigned width) const noexcept {
    const std::uint64_t byte = word_of(bit);
    return load(byte) >> (bit - byte * 8) & low_bits(width);
  }

  void set(std::uint64_t bit, unsigned width, std::uint64_t value) const noexcept {
    const std::uint64_t byte = word_of(bit), shift = bit - byte * 8;
    const std::uint64_t word = (load(byte) & ~(low_bits(width) << shift)) | value << shift;
    std::memcpy(body_ + byte, &word, sizeof word);
  }

  // Are all bits from `bit` to the end zero?
  bool is_zero_from(std::uint64_t bit) const noexcept {
    const std::uint64_t bytes = last_word_ + 8;
    std::uint64_t byte = bit >> 3;
    if (byte < bytes && body_[byte] >> (bit & 7) != 0) return false;
    for (++byte; byte < bytes; ++byte)
      if (body_[byte] != 0) return false;
    return true;
  }

 private:
  // Byte where the word of a field starts; near the end, the last whole word.
  std::uint64_t word_of(std::uint64_t bit) const noexcept {
    return bit >> 3 < last_word_ ? bit >> 3 : last_word_;
  }

  std::uint64_t load(std::uint64_t byte) const noexcept {
    std::uint64_t word;
    std::memcpy(&word, body_ + byte, sizeof word);
    return word;
  }

  Byte* body_;
  std::uint64_t last_word_;
};

}  // namespace streamfilter
