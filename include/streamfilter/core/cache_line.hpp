// Queues of short fingerprints in 64-byte lines. A line is searched and moved as a whole, as a
// vector of words, whatever the width of the fingerprints.
#pragma once

#include <cstdint>
#include <cstring>

#include "streamfilter/core/packed_fields.hpp"
#include "streamfilter/core/wide_registers.hpp"

namespace streamfilter {

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

// A queue of up to `length` different fingerprints of `width` bits, newest first; 0 is none. It lies
// in a line, of which this is a copy with all that is beside it; `store` writes the line back.
// `kWide`: for callers that are FOR_WIDE_REGISTERS.
template <bool kWide>
class BasicFingerprintQueue {
#define ALWAYS_INLINE [[gnu::always_inline]] inline  // so that callers choose the instructions

 public:
  // The queue at bit `start` of a line, a whole number of fields from its beginning. Alone: there is
  // nothing else in the line.
  ALWAYS_INLINE BasicFingerprintQueue(unsigned width, unsigned length, const unsigned char* line,
                                      unsigned start, bool is_alone = false) noexcept
      : pattern_(kFieldPatterns.of[width]),
        width_(width),
        length_(length),
        start_(start),
        is_alone_(is_alone) {
    load(words_, line);
    first_bits(own_, start + width * length);
    if (is_alone) return;
    LineVector front;
    first_bits(front, start);
    own_ &= ~front;
  }

  ALWAYS_INLINE void store(unsigned char* line) const noexcept {
    std::memcpy(line, &words_, kLineBytes);
  }

  // Is the fingerprint there?
  ALWAYS_INLINE bool has(std::uint64_t fingerprint) const noexcept {
    LineVector equal;
    find_fields(fingerprint, equal);
    if constexpr (kWide) return nonzero_words(equal) != 0;
    std::uint64_t words[kLineWords], all = 0;
    std::memcpy(words, &equal, sizeof words);
    for (const std::uint64_t word : words) all |= word;
    return all != 0;
  }

  // The same, and `reach` gets a mask of the queue's bits up to its last one; of all of them if it is
  // not there.
  ALWAYS_INLINE bool find(std::uint64_t fingerprint, LineVector& reach) const noexcept {
    LineVector equal;
    find_fields(fingerprint, equal);
    if constexpr (kWide) {
      bits_up_to(equal, reach);
      reach &= own_;
      return nonzero_words(equal) != 0;
    }
    // The words from the one on that has a bit set: all their bits; then those behind it.
    LineVector from = (LineVector)(equal != 0), behind;
    from |= __builtin_shufflevector(from, LineVector{}, 8, 8, 8, 8, 0, 1, 2, 3);
    from |= __builtin_shufflevector(from, LineVector{}, 8, 8, 0, 1, 2, 3, 4, 5);
    raise(from, behind);
    from |= behind;
    raise(from, behind);
    // In words in front of it, where nothing is equal, this sets all bits.
    reach = (equal ^ (equal - 1)) & ~behind & own_;
    return from[kLineWords - 1] != 0;
  }

  // Moves what lies within `reach` by one place and puts the fingerprint in front. What was last
  // there is gone.
  ALWAYS_INLINE void push(std::uint64_t fingerprint, const LineVector& reach) noexcept {
    if (!is_alone_) return push_at(start_, fingerprint, reach);
    LineVector below = LineVector{} + (fingerprint << (64 - width_));
    below = __builtin_shufflevector(words_, below, 8, 0, 1, 2, 3, 4, 5, 6);
    words_ = (words_ & ~reach) | (reach & (words_ << width_ | below >> (64 - width_)));
  }

  // The same, but the fingerprint goes to `place`, and what is in front of that stays.
  ALWAYS_INLINE void push_to(unsigned place, std::uint64_t fingerprint,
                             const LineVector& reach) noexcept {
    LineVector front;
    first_bits(front, start_ + place * width_);
    push_at(start_ + place * width_, fingerprint, reach & ~front);
  }

  // The place at which `reach` ends.
  ALWAYS_INLINE unsigned last_place(const LineVector& reach) const noexcept {
    std::uint64_t words[kLineWords];
    std::memcpy(words, &reach, sizeof words);
    unsigned bits = 0;
    for (const std::uint64_t word : words)
      bits += static_cast<unsigned>(__builtin_popcountll(word));
    return bits / width_ - 1;
  }

  std::uint64_t get(unsigned i) const noexcept {
    return PackedFields(reinterpret_cast<const unsigned char*>(&words_), kLineBytes)
        .get(start_ + i * width_, width_);
  }

  void set(unsigned i, std::uint64_t fingerprint) noexcept {
    PackedFields(reinterpret_cast<unsigned char*>(&words_), kLineBytes)
        .set(start_ + i * width_, width_, fingerprint);
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

  // Every word gives way to the one below it, the lowest to zero.
  ALWAYS_INLINE static void raise(const LineVector& words, LineVector& raised) noexcept {
    raised = __builtin_shufflevector(words, LineVector{}, 8, 0, 1, 2, 3, 4, 5, 6);
  }

  ALWAYS_INLINE static void first_bits(LineVector& mask, unsigned bits) noexcept {
    if constexpr (kWide) return first_bits_wide(bits, mask);
    const std::uint64_t whole = bits / 64;
    mask = (LineVector)(kNumbers < whole) |
           ((LineVector)(kNumbers == whole) & ((std::uint64_t{1} << bits % 64) - 1));
  }

  // In every field of the line.
  ALWAYS_INLINE void repeat(std::uint64_t fingerprint, LineVector& repeated) const noexcept {
    LineVector down, up;
    load(down, pattern_.down);
    load(up, pattern_.up);
    const LineVector in_words = LineVector{} + fingerprint * pattern_.first;
    repeated = in_words >> down | in_words << up;
  }

  // The highest bit of the field of the queue that is equal to the fingerprint: at most one, because
  // fingerprints are different.
  //
  // Exclusive or with the fingerprint repeated in every field leaves zeros where they are equal.
  // Adding ones to all bits but the highest of a field, which cannot carry out of it, sets that
  // highest bit unless the others were zero.
  ALWAYS_INLINE void find_fields(std::uint64_t fingerprint, LineVector& equal) const noexcept {
    LineVector rest, last, begun, ended, different, first_parts;
    load(rest, pattern_.rest);
    load(last, pattern_.last);
    load(begun, pattern_.begun);
    load(ended, pattern_.ended);
    repeat(fingerprint, different);
    different ^= words_;
    const LineVector parts = ~(((different & rest) + rest) | different) & last;
    // A second part counts only if the first one was equal, too.
    raise(parts >> 63, first_parts);
    equal = parts & ~begun & ~(ended & (first_parts - 1));
    if (!is_alone_) equal &= own_;
  }

  ALWAYS_INLINE void push_at(unsigned bit, std::uint64_t fingerprint,
                             const LineVector& reach) noexcept {
    LineVector below, repeated, front;
    raise(words_, below);
    repeat(fingerprint, repeated);
    first_bits(front, bit + width_);
    const LineVector moved = words_ << width_ | below >> (64 - width_);
    words_ = (words_ & ~reach) | (reach & ((moved & ~front) | (repeated & front)));
  }

  const FieldPattern& pattern_;
  unsigned width_, length_, start_;
  bool is_alone_;
  LineVector words_, own_;  // the line, and which bits of it are the queue's
#undef ALWAYS_INLINE
};

using FingerprintQueue = BasicFingerprintQueue<false>;

}  // namespace streamfilter
