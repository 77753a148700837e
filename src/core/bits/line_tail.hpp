// What a 64-byte line keeps in its last bits, behind the fingerprints: how many have entered it, or
// their ages.
#pragma once

#include "core/bits/fingerprint_queue.hpp"

namespace streamfilter {

// Number of fingerprints that have entered the line, modulo 32, in its last 5 bits. It tells which
// of two lines has taken fewer, if their numbers differ by less than 16.
constexpr unsigned kEntriesBits = 5;
constexpr unsigned kEntriesStart = kLineBits - kEntriesBits;

inline unsigned entries(const unsigned char* line) noexcept {
  return line[kLineBytes - 1] >> kEntriesStart % 8;
}

// `count` may be negative.
inline void add_entries(unsigned char* line, unsigned count) noexcept {
  line[kLineBytes - 1] =
      static_cast<unsigned char>(line[kLineBytes - 1] + (count << kEntriesStart % 8));
}

// Has the line taken fewer than the other one?
inline bool is_behind(const unsigned char* line, const unsigned char* other) noexcept {
  constexpr unsigned kMask = (1u << kEntriesBits) - 1;
  return ((entries(other) - entries(line) - 1) & kMask) < kMask / 2;
}

// Ages of the fingerprints. The line's last 32 bits are its stamp, a tick modulo 2^32; before it,
// each field has 4 bits, the ticks that had passed at the stamp. So an untouched line ages without
// any work.
constexpr unsigned kAgeBits = 4;
constexpr unsigned kAges = 1 << kAgeBits;
constexpr unsigned kStampBits = 32;

// `Byte` is const-qualified for reading.
template <typename Byte = unsigned char>
class LineAges {
 public:
  LineAges(Byte* line, unsigned fields) noexcept
      : line_(line), first_((kLineBits - kStampBits) / kAgeBits - fields) {}

  unsigned get(unsigned field) const noexcept {
    const unsigned at = first_ + field;
    return line_[at / 2] >> at % 2 * kAgeBits & (kAges - 1);
  }

  void set(unsigned field, unsigned age) const noexcept {
    const unsigned at = first_ + field, shift = at % 2 * kAgeBits;
    line_[at / 2] =
        static_cast<unsigned char>((line_[at / 2] & ~((kAges - 1) << shift)) | age << shift);
  }

  // Moves ages from `first` to `last` by one field, and puts `age` in front. Inlined for the
  // caller's instruction set, since the whole line moves.
  [[gnu::always_inline]] inline void push(unsigned first, unsigned last,
                                          unsigned age) const noexcept {
    LineVector words, front, reach;
    std::memcpy(&words, line_, kLineBytes);
    std::memcpy(&front, kFirstBits.of[(first_ + first) * kAgeBits].words, kLineBytes);
    std::memcpy(&reach, kFirstBits.of[(first_ + last + 1) * kAgeBits].words, kLineBytes);
    reach &= ~front;
    const LineVector below = __builtin_shufflevector(words, LineVector{}, 8, 0, 1, 2, 3, 4, 5, 6);
    words = (words & ~reach) | (reach & (words << kAgeBits | below >> (64 - kAgeBits)));
    std::memcpy(line_, &words, kLineBytes);
    set(first, age);
  }

  // Ticks from the stamp to `clock`, which is not earlier.
  std::uint64_t since_stamp(std::uint64_t clock) const noexcept {
    std::uint32_t stamp;
    std::memcpy(&stamp, line_ + kLineBytes - sizeof stamp, sizeof stamp);
    return static_cast<std::uint32_t>(clock - stamp);
  }

  void set_stamp(std::uint64_t clock) const noexcept {
    const std::uint32_t stamp = static_cast<std::uint32_t>(clock);
    std::memcpy(line_ + kLineBytes - sizeof stamp, &stamp, sizeof stamp);
  }

  // First bit of the ages.
  unsigned start() const noexcept { return first_ * kAgeBits; }

 private:
  Byte* line_;
  unsigned first_;  // field of the first age, in half bytes
};

}  // namespace streamfilter
