// An array of cells of 1 to 4 bits, packed without gaps.
#pragma once

#include <algorithm>
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
