// An array of numbers of 1 to 64 bits each, packed without gaps, of a width known at run time.
#pragma once

#include <algorithm>
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

// Fields of any width up to 57 bits at any bit of a body.

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

// An array of cells of 1 to 4 bits, packed without gaps.

// Cell i lies in bits i*bits … i*bits+bits-1, counted from the lowest bit of the first byte.
// `Byte` is const-qualified for reading.
template <unsigned bits, typename Byte = unsigned char>
class PackedCells {
  static_assert(bits >= 1 && bits <= 4);

 public:
  static constexpr unsigned kLargest = (1u << bits) - 1;

  explicit PackedCells(Byte* body) noexcept : body_(body) {}

  // Number of cells that fit into `bytes` (a multiple of 8). Cells of 3 bits straddle bytes and are
  // read two bytes at a time, so the last byte must not be the first of such a pair.
  static constexpr std::uint64_t capacity(std::uint64_t bytes) noexcept {
    return (bytes * 8 - (bits == 3 ? 8 : 0)) / bits;
  }

  unsigned get(std::uint64_t i) const noexcept {
    const std::uint64_t bit = i * bits;
    return load(bit >> 3) >> (bit & 7) & kLargest;
  }

  void set(std::uint64_t i, unsigned value) const noexcept {
    const std::uint64_t bit = i * bits;
    const unsigned shift = bit & 7;
    store(bit >> 3, (load(bit >> 3) & ~(kLargest << shift)) | value << shift);
  }

  // Subtracts 1 from every non-zero cell of `first` … `first+count-1`; returns how many became
  // zero. Works on up to a word of cells at once: subtracting the low bit of a non-zero cell
  // borrows from no other.
  std::uint64_t decrement(std::uint64_t first, std::uint64_t count) const noexcept {
    std::uint64_t emptied = 0;
    for (std::uint64_t bit = first * bits, end = (first + count) * bits; bit < end;) {
      Byte* at = body_ + (bit >> 6) * 8;
      const std::uint64_t offset = bit & 63;
      const std::uint64_t size = std::min(end - bit, bits == 3 ? 63 : 64 - offset);
      const bool crosses = bits == 3 && offset + size > 64;
      const std::uint64_t low = load_word(at), high = crosses ? load_word(at + 8) : 0;
      const std::uint64_t cells = low >> offset | high << 1 << (63 - offset);
      const std::uint64_t taken = non_zero(cells) & ~std::uint64_t{0} >> (64 - size);
      const std::uint64_t changed = cells ^ (cells - taken);
      emptied += static_cast<std::uint64_t>(__builtin_popcountll(taken & ~non_zero(cells - taken)));
      store_word(at, low ^ changed << offset);
      if (crosses) store_word(at + 8, high ^ changed >> 1 >> (63 - offset));
      bit += size;
    }
    return emptied;
  }

 private:
  // The lowest bit of every whole cell of a word.
  static constexpr std::uint64_t kLowBits = (~std::uint64_t{0} >> 64 % bits) / kLargest;

  // The lowest bits of the cells that are not zero.
  static std::uint64_t non_zero(std::uint64_t word) noexcept {
    if constexpr (bits > 1) word |= word >> 1;
    if constexpr (bits > 2) word |= word >> (bits - 2);
    return word & kLowBits;
  }

  static std::uint64_t load_word(const Byte* at) noexcept {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
  }

  static void store_word(Byte* at, std::uint64_t word) noexcept { std::memcpy(at, &word, 8); }

  unsigned load(std::uint64_t byte) const noexcept {
    if constexpr (bits == 3) return body_[byte] | static_cast<unsigned>(body_[byte + 1]) << 8;
    return body_[byte];
  }

  void store(std::uint64_t byte, unsigned value) const noexcept {
    body_[byte] = static_cast<unsigned char>(value);
    if constexpr (bits == 3) body_[byte + 1] = static_cast<unsigned char>(value >> 8);
  }

  Byte* body_;
};

// Calls `work` with std::integral_constant-like width 1..4 chosen at run time.
template <unsigned n>
struct CellWidth {
  static constexpr unsigned value = n;
};
template <typename Work>
auto with_cell_width(unsigned bits, Work&& work) noexcept {
  switch (bits) {
    case 1: return work(CellWidth<1>{});
    case 2: return work(CellWidth<2>{});
    case 3: return work(CellWidth<3>{});
    default: return work(CellWidth<4>{});
  }
}

}  // namespace streamfilter
