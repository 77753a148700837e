// An array of cells of 1 to 4 bits, packed without gaps.
#pragma once

#include <cstdint>
#include <cstring>

namespace streamfilter {

// Cell i lies in bits i*bits … i*bits+bits-1, counted from the lowest bit of the first byte.
// `Byte` is const-qualified for reading.
template <unsigned bits, typename Byte = unsigned char>
class PackedCells {
  static_assert(bits >= 1 && bits <= 4);

 public:
  static constexpr unsigned kLargest = (1u << bits) - 1;

  explicit PackedCells(Byte* body) noexcept : body_(body) {}

  // How many cells fit into `bytes` (a multiple of 8). Cells of 3 bits straddle bytes and are
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

  // Takes 1 from every non-zero cell of `first` … `first+count-1`; returns how many became zero.
  std::uint64_t decrement(std::uint64_t first, std::uint64_t count) const noexcept {
    if constexpr (bits == 3) {
      std::uint64_t emptied = 0;
      for (std::uint64_t i = first; i < first + count; ++i) {
        const unsigned value = get(i);
        if (value == 0) continue;
        set(i, value - 1);
        emptied += value == 1;
      }
      return emptied;
    } else {
      return decrement_words(first * bits, (first + count) * bits);
    }
  }

 private:
  // The lowest bit of every cell of a word.
  static constexpr std::uint64_t kLowBits = ~std::uint64_t{0} / kLargest;

  static std::uint64_t non_zero(std::uint64_t word) noexcept {
    if constexpr (bits == 1) return word;
    word |= word >> 1;
    if constexpr (bits == 4) word |= word >> 2;
    return word & kLowBits;
  }

  // All cells of a word at once: subtracting the low bit of a non-zero cell borrows from no other.
  std::uint64_t decrement_words(std::uint64_t first_bit, std::uint64_t end_bit) const noexcept {
    std::uint64_t emptied = 0;
    while (first_bit < end_bit) {
      const std::uint64_t word_bit = first_bit & ~std::uint64_t{63};
      const std::uint64_t stop = end_bit - word_bit < 64 ? end_bit - word_bit : 64;
      std::uint64_t range = ~std::uint64_t{0} << (first_bit - word_bit);
      if (stop < 64) range &= (std::uint64_t{1} << stop) - 1;
      std::uint64_t word;
      std::memcpy(&word, body_ + word_bit / 8, 8);
      const std::uint64_t taken = non_zero(word) & range;
      word -= taken;
      emptied += static_cast<std::uint64_t>(__builtin_popcountll(taken & ~non_zero(word)));
      std::memcpy(body_ + word_bit / 8, &word, 8);
      first_bit = word_bit + 64;
    }
    return emptied;
  }

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
