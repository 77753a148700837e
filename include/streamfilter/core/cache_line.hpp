// Queues of short fingerprints in 64-byte lines. A line is searched and moved as a whole, as a
// vector of words, whatever the width of the fingerprints.
#pragma once

#include <cstdint>
#include <cstring>

#include "streamfilter/core/packed_fields.hpp"

namespace streamfilter {

constexpr unsigned kLineBytes = 64;
constexpr unsigned kLineBits = 512;
constexpr unsigned kLineWords = 8;

constexpr unsigned kWidestFingerprint = 48;

// Fields of one width in 512 bits: field i takes the bits i*width … i*width + width-1. A field that
// begins in one word and ends in the next is seen as two parts, each in its own word.
struct alignas(kLineBytes) FieldPattern {
  std::uint64_t down[kLineWords] = {};   // bits of a field that precede the word
  std::uint64_t up[kLineWords] = {};     // … and that lack from it to whole fields in 64 bits
  std::uint64_t last[kLineWords] = {};   // the highest bit of every field and of every part
  std::uint64_t rest[kLineWords] = {};   // the other bits
  std::uint64_t begun[kLineWords] = {};  // the highest bit of a first part
  std::uint64_t ended[kLineWords] = {};  // the highest bit of a second part
  std::uint64_t first = 0;  // the lowest bit of every field, as far as they fit into 64 bits
};

struct FieldPatterns {
  FieldPattern of[kWidestFingerprint + 1];

  constexpr FieldPatterns() noexcept : of() {
    for (unsigned width = 1; width <= kWidestFingerprint; ++width) {
      FieldPattern& pattern = of[width];
      for (unsigned bit = 0; bit < 64; bit += width) pattern.first |= std::uint64_t{1} << bit;
      for (unsigned word = 0; word < kLineWords; ++word) {
        const unsigned cut = word * 64 % width;
        pattern.down[word] = cut;
        pattern.up[word] = (64 - 64 % width - cut) % 64;
      }
      for (unsigned bit = 0; bit + width <= kLineBits; bit += width) {
        const unsigned end = bit + width - 1;
        pattern.last[end / 64] |= std::uint64_t{1} << end % 64;
        for (unsigned i = bit; i < end; ++i) pattern.rest[i / 64] |= std::uint64_t{1} << i % 64;
        if (bit / 64 == end / 64) continue;
        const std::uint64_t top = std::uint64_t{1} << 63;
        pattern.begun[bit / 64] |= top;
        pattern.last[bit / 64] |= top;
        pattern.rest[bit / 64] &= ~top;
        pattern.ended[end / 64] |= std::uint64_t{1} << end % 64;
      }
    }
  }
};

inline constexpr FieldPatterns kFieldPatterns;

// The compiler makes of these what the machine has.
using LineVector = std::uint64_t __attribute__((vector_size(kLineBytes)));

// A queue of up to `length` different fingerprints of `width` bits, newest first; 0 is none. It is
// a copy of its bits in a line; `store` writes it back.
class FingerprintQueue {
#define ALWAYS_INLINE [[gnu::always_inline]] inline  // so that callers choose the instructions

 public:
  // The queue at bit `start` of a line.
  ALWAYS_INLINE FingerprintQueue(unsigned width, unsigned length, const unsigned char* line,
                                 unsigned start) noexcept
      : pattern_(kFieldPatterns.of[width]), width_(width), length_(length) {
    load(words_, line);
    if (!has_line()) {
      move_down(start);
      keep_own(words_);
    }
  }

  ALWAYS_INLINE void store(unsigned char* line, unsigned start) const noexcept {
    if (has_line()) {
      std::memcpy(line, &words_, kLineBytes);
      return;
    }
    const PackedFields<> fields(line, kLineBytes);
    for (unsigned i = 0; i < length_; ++i) fields.set(start + i * width_, width_, get(i));
  }

  // Is the fingerprint there? `reach` gets a mask of all bits up to its last one; of all bits of
  // the queue if it is not there.
  //
  // Exclusive or with the fingerprint repeated in every field leaves zeros where they are equal.
  // Adding ones to all bits but the highest of a field, which cannot carry out of it, sets that
  // highest bit unless the others were zero.
  //
  // `kIsShared`: the line holds more than fingerprints.
  template <bool kIsShared = false>
  ALWAYS_INLINE bool find(std::uint64_t fingerprint, LineVector& reach) const noexcept {
    LineVector down, up, rest, last, begun, ended;
    load(down, pattern_.down);
    load(up, pattern_.up);
    load(rest, pattern_.rest);
    load(last, pattern_.last);
    load(begun, pattern_.begun);
    load(ended, pattern_.ended);
    const LineVector repeated = LineVector{} + fingerprint * pattern_.first;
    const LineVector different = words_ ^ (repeated >> down | repeated << up);
    const LineVector parts = ~(((different & rest) + rest) | different) & last;
    // A second part counts only if the first one was equal, too.
    LineVector first_parts = parts >> 63;
    raise(first_parts, 0);
    LineVector equal = parts & ~begun & ~(ended & (first_parts - 1));
    if (kIsShared) keep_own(equal);

    // At most one bit is set, because fingerprints are different: the number of its word, from 1.
    const LineVector numbers = (LineVector)(equal != 0) & (kNumbers + 1);
    std::uint64_t number[kLineWords], count = 0;
    std::memcpy(number, &numbers, sizeof number);
    for (unsigned i = 0; i < kLineWords; ++i) count |= number[i];
    // In words without it all bits are set here.
    reach = (equal ^ (equal - 1)) & (LineVector)(kNumbers <= count - 1);
    keep_own(reach);
    return count != 0;
  }

  // Moves what lies within `reach` by one place and puts the fingerprint in front. What was last
  // there is gone.
  ALWAYS_INLINE void push(std::uint64_t fingerprint, const LineVector& reach) noexcept {
    LineVector below = words_;
    raise(below, fingerprint << (64 - width_));
    const LineVector moved = words_ << width_ | below >> (64 - width_);
    words_ = (moved & reach) | (words_ & ~reach);
  }

  // The same, but the fingerprint goes to `place`, and what is in front of that stays.
  ALWAYS_INLINE void push_to(unsigned place, std::uint64_t fingerprint,
                             const LineVector& reach) noexcept {
    LineVector front;
    first_bits(front, place * width_);
    push(fingerprint, reach & ~front);
    set(place, fingerprint);
  }

  std::uint64_t get(unsigned i) const noexcept { return fields().get(i * width_, width_); }

  void set(unsigned i, std::uint64_t fingerprint) noexcept {
    PackedFields(reinterpret_cast<unsigned char*>(&words_), kLineBytes)
        .set(i * width_, width_, fingerprint);
  }

  unsigned length() const noexcept { return length_; }
  bool is_full() const noexcept { return get(length_ - 1) != 0; }

  // How many fingerprints it holds.
  unsigned size() const noexcept {
    unsigned i = length_;
    while (i > 0 && get(i - 1) == 0) --i;
    return i;
  }

  // The place of a fingerprint; length() if it is not there.
  unsigned place(std::uint64_t fingerprint) const noexcept {
    unsigned i = 0;
    while (i < length_ && get(i) != fingerprint) ++i;
    return i;
  }

 private:
  static constexpr LineVector kNumbers = {0, 1, 2, 3, 4, 5, 6, 7};

  ALWAYS_INLINE static void load(LineVector& words, const void* from) noexcept {
    std::memcpy(&words, from, kLineBytes);
  }

  // Every word gives way to the one below it, the lowest to `first`.
  ALWAYS_INLINE static void raise(LineVector& words, std::uint64_t first) noexcept {
    const LineVector lowest = LineVector{} + first;
    words = __builtin_shufflevector(words, lowest, 8, 0, 1, 2, 3, 4, 5, 6);
  }

  // Is there no second bucket in the line?
  ALWAYS_INLINE bool has_line() const noexcept { return width_ * length_ * 2 > kLineBits; }

  // Clears the bits that do not belong to the queue.
  ALWAYS_INLINE void keep_own(LineVector& words) const noexcept {
    LineVector own;
    first_bits(own, width_ * length_);
    words &= own;
  }

  ALWAYS_INLINE static void first_bits(LineVector& mask, std::uint64_t bits) noexcept {
    const std::uint64_t whole = bits / 64;
    mask = (LineVector)(kNumbers < whole) | ((LineVector)(kNumbers == whole) & low_bits(bits % 64));
  }

  void move_down(unsigned bits) noexcept {
    std::uint64_t from[kLineWords + 1] = {}, to[kLineWords] = {};
    std::memcpy(from, &words_, kLineBytes);
    const unsigned words = bits / 64, shift = bits % 64;
    for (unsigned i = 0; i + words < kLineWords; ++i)
      to[i] = shift > 0 ? from[i + words] >> shift | from[i + words + 1] << (64 - shift)
                        : from[i + words];
    load(words_, to);
  }

  PackedFields<const unsigned char> fields() const noexcept {
    return {reinterpret_cast<const unsigned char*>(&words_), kLineBytes};
  }

  const FieldPattern& pattern_;
  unsigned width_, length_;
  LineVector words_;
#undef ALWAYS_INLINE
};

}  // namespace streamfilter
