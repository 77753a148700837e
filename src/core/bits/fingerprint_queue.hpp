// Queues of short fingerprints in 64-byte lines. Searches and moves a whole line as a vector of
// words, whatever the width of the fingerprints.
#pragma once

#include "core/bits/avx512.hpp"
#include "core/bits/packed_words.hpp"

namespace streamfilter {

constexpr unsigned kMaxFingerprintBits = 48;

// Fields of one width in 512 bits: field i takes bits i*width … i*width + width-1. A field that
// spans two words is treated as two parts, each in its own word.
struct alignas(kLineBytes) FieldPattern {
  std::uint64_t down[kLineWords] = {};   // bits of a field that lie before the word
  std::uint64_t up[kLineWords] = {};     // bits that complete the last field in 64 bits
  std::uint64_t rest[kLineWords] = {};   // all bits except the highest of every field and part
  std::uint64_t whole[kLineWords] = {};  // highest bit of a field within one word
  std::uint64_t ended[kLineWords] =
      {};                   // highest bit of a second part; that of a first part is bit 63
  std::uint64_t first = 0;  // lowest bit of every field that begins within 64 bits
  unsigned inverse = 0;     // of the width: number of bits times this gives fields
};

// The inverse is rounded up, without effect for up to 512 bits.
constexpr unsigned kInverseBits = 16;

struct FieldPatterns {
  FieldPattern of[kMaxFingerprintBits + 1];

  constexpr FieldPatterns() noexcept : of() {
    for (unsigned width = 1; width <= kMaxFingerprintBits; ++width) {
      FieldPattern& pattern = of[width];
      pattern.inverse = (1u << kInverseBits) / width + 1;
      for (unsigned bit = 0; bit < 64; bit += width) pattern.first |= std::uint64_t{1} << bit;
      for (unsigned word = 0; word < kLineWords; ++word) {
        const unsigned cut = word * 64 % width;
        pattern.down[word] = cut;
        pattern.up[word] = (64 - 64 % width - cut) % 64;
      }
      for (unsigned bit = 0; bit + width <= kLineBits; bit += width) {
        const unsigned end = bit + width - 1;
        const bool is_whole = bit / 64 == end / 64;
        (is_whole ? pattern.whole : pattern.ended)[end / 64] |= std::uint64_t{1} << end % 64;
        for (unsigned i = bit; i < end; ++i)
          if (is_whole || i % 64 != 63) pattern.rest[i / 64] |= std::uint64_t{1} << i % 64;
      }
    }
  }
};

inline constexpr FieldPatterns kFieldPatterns;

// The first bits of a line, by their number. A filter uses few of these rows.
struct FirstBits {
  struct alignas(kLineBytes) {
    std::uint64_t words[kLineWords];
  } of[kLineBits + 1];

  constexpr FirstBits() noexcept : of() {
    for (unsigned count = 0; count <= kLineBits; ++count)
      for (unsigned word = 0; word < kLineWords; ++word)
        of[count].words[word] = count <= word * 64 ? 0 : low_bits(count - word * 64);
  }
};

inline constexpr FirstBits kFirstBits;

// A queue of up to `length` different fingerprints of `width` bits, newest first; 0 means none.
// Works on a copy of the whole line; `store` writes it back. `kWide`: the caller is
// FOR_WIDE_REGISTERS. `kAlone`: nothing else is in the line, except, with `kCounted`, the count in
// its last bits (line_tail.hpp).
template <bool kWide, bool kAlone = false, bool kCounted = false>
class BasicFingerprintQueue {
#define ALWAYS_INLINE [[gnu::always_inline]] inline  // so that the caller's instruction set applies

 public:
  // The queue at bit `start` of a line, a whole number of fields from its beginning.
  ALWAYS_INLINE BasicFingerprintQueue(unsigned width, unsigned length, const unsigned char* line,
                                      unsigned start) noexcept
      : pattern_(kFieldPatterns.of[width]),
        width_(width),
        length_(length),
        start_(kAlone ? 0 : start) {
    load(words_, line);
    first_bits(own_, start_ + width * length);
    if constexpr (kAlone) return;
    LineVector front;
    first_bits(front, start_);
    own_ &= ~front;
  }

  ALWAYS_INLINE void store(unsigned char* line) const noexcept {
    std::memcpy(line, &words_, kLineBytes);
  }

  // Is the fingerprint there?
  ALWAYS_INLINE bool has(std::uint64_t fingerprint) const noexcept {
    LineVector equal;
    find_fields(fingerprint, equal);
    return is_any(equal);
  }

  // Does the same as above; `reach` becomes a mask of the queue's bits up to the fingerprint, or of
  // all bits if it is not there.
  ALWAYS_INLINE bool find(std::uint64_t fingerprint, LineVector& reach) const noexcept {
    LineVector equal;
    find_fields(fingerprint, equal);
    if constexpr (kWide) {
      const unsigned word = nonzero_words(equal);
      bits_up_to(equal, word, reach);
      reach &= own_;
      return word != 0;
    }
    // All bits of the words from the one with the set bit on; then of the words behind it.
    LineVector from = (LineVector)(equal != 0), behind;
    from |= __builtin_shufflevector(from, LineVector{}, 8, 8, 8, 8, 0, 1, 2, 3);
    from |= __builtin_shufflevector(from, LineVector{}, 8, 8, 0, 1, 2, 3, 4, 5);
    raise(from, LineVector{}, behind);
    from |= behind;
    raise(from, LineVector{}, behind);
    // In words before it, where nothing is equal, this sets all bits.
    reach = (equal ^ (equal - 1)) & ~behind & own_;
    return from[kLineWords - 1] != 0;
  }

  // Moves the fields within `reach` by one field, drops the last one, and puts the fingerprint in
  // front.
  ALWAYS_INLINE void push(std::uint64_t fingerprint, const LineVector& reach) noexcept {
    if constexpr (!kAlone) return push_at(start_, fingerprint, reach);
    LineVector in_front, moved;
    repeat_word(fingerprint << (64 - width_), in_front);
    move(in_front, moved);
    words_ = (words_ & ~reach) | (reach & moved);
  }

  // Does the same as above, but puts the fingerprint into `field`, behind the fields in front.
  ALWAYS_INLINE void push_to(unsigned field, std::uint64_t fingerprint,
                             const LineVector& reach) noexcept {
    LineVector front;
    first_bits(front, start_ + field * width_);
    push_at(start_ + field * width_, fingerprint, reach & ~front);
  }

  // The field where `reach` ends.
  ALWAYS_INLINE unsigned last_field(const LineVector& reach) const noexcept {
    return ((bits_in_front(reach) - start_) * pattern_.inverse >> kInverseBits) - 1;
  }

  // If `really`, becomes a copy of the other queue, which has the same shape; likewise `reach`.
  ALWAYS_INLINE void replace(bool really, const BasicFingerprintQueue& other, LineVector& reach,
                             const LineVector& other_reach) noexcept {
    const LineVector mask = LineVector{} - std::uint64_t{really};
    words_ ^= (words_ ^ other.words_) & mask;
    reach ^= (reach ^ other_reach) & mask;
  }

  // Adds to the count in the line's last bits, from bit `from` on.
  ALWAYS_INLINE void count(bool one, unsigned from) noexcept {
    LineVector added{};
    added[kLineWords - 1] = std::uint64_t{one} << (from % 64);
    words_ += added;
  }

  std::uint64_t get(unsigned i) const noexcept {
    return PackedFields(reinterpret_cast<const unsigned char*>(&words_), kLineBytes)
        .get(start_ + i * width_, width_);
  }

  void set(unsigned i, std::uint64_t fingerprint) noexcept {
    PackedFields(reinterpret_cast<unsigned char*>(&words_), kLineBytes)
        .set(start_ + i * width_, width_, fingerprint);
  }

  // Removes a field; those behind it move up. False if there is no such field.
  bool erase(unsigned field) noexcept {
    if (field >= length_) return false;
    for (unsigned i = field; i + 1 < length_; ++i) set(i, get(i + 1));
    set(length_ - 1, 0);
    return true;
  }

  unsigned length() const noexcept { return length_; }

  ALWAYS_INLINE bool is_full() const noexcept {
    LineVector last;
    first_bits(last, start_ + (length_ - 1) * width_);
    return is_any(words_ & own_ & ~last);
  }

  // Number of fingerprints.
  unsigned size() const noexcept {
    unsigned i = length_;
    while (i > 0 && get(i - 1) == 0) --i;
    return i;
  }

  // Rank of a fingerprint; length() if it is not there.
  unsigned rank(std::uint64_t fingerprint) const noexcept {
    unsigned i = 0;
    while (i < length_ && get(i) != fingerprint) ++i;
    return i;
  }

 private:
  ALWAYS_INLINE static void load(LineVector& words, const void* from) noexcept {
    std::memcpy(&words, from, kLineBytes);
  }

  ALWAYS_INLINE static void first_bits(LineVector& mask, unsigned bits) noexcept {
    load(mask, kFirstBits.of[bits].words);
  }

  // All bits up to the highest set one; needs at least one.
  ALWAYS_INLINE static unsigned bits_in_front(const LineVector& bits) noexcept {
    std::uint64_t words[kLineWords];
    std::memcpy(words, &bits, sizeof words);
    unsigned word = kLineWords - 1;
    if constexpr (kWide)
      word = 31 - static_cast<unsigned>(__builtin_clz(nonzero_words(bits)));
    else
      while (words[word] == 0) --word;
    return word * 64 + 64 - static_cast<unsigned>(__builtin_clzll(words[word]));
  }

  ALWAYS_INLINE static bool is_any(const LineVector& bits) noexcept {
    if constexpr (kWide) return nonzero_words(bits) != 0;
    std::uint64_t words[kLineWords], all = 0;
    std::memcpy(words, &bits, sizeof words);
    for (const std::uint64_t word : words) all |= word;
    return all != 0;
  }

  // Moves every word up by one; the highest word of `below` becomes the lowest.
  ALWAYS_INLINE static void raise(const LineVector& words, const LineVector& below,
                                  LineVector& raised) noexcept {
    if constexpr (kWide)
      raise_wide(words, below, raised);
    else
      raised = __builtin_shufflevector(words, below, 15, 0, 1, 2, 3, 4, 5, 6);
  }

  // Moves all bits up by one field; the highest bits of `below` fill the lowest one.
  ALWAYS_INLINE void move(const LineVector& below, LineVector& moved) const noexcept {
    LineVector raised;
    raise(words_, below, raised);
    moved = words_ << width_ | raised >> (64 - width_);
  }

  ALWAYS_INLINE static void repeat_word(std::uint64_t word, LineVector& words) noexcept {
    if constexpr (kWide)
      repeat_wide(word, words);
    else
      words = LineVector{} + word;
  }

  // Repeats the fingerprint in every field of the line.
  ALWAYS_INLINE void repeat(std::uint64_t fingerprint, LineVector& repeated) const noexcept {
    LineVector down, up;
    load(down, pattern_.down);
    load(up, pattern_.up);
    LineVector in_words;
    repeat_word(fingerprint * pattern_.first, in_words);
    repeated = in_words >> down | in_words << up;
  }

  // The highest bit of the field of the queue that is equal to the fingerprint: at most one,
  // because fingerprints are different.
  //
  // Exclusive or with the fingerprint repeated in every field leaves zeros where they are equal.
  // Adding ones to all bits but the highest of a field, which cannot carry out of it, sets that
  // highest bit unless the others were zero. A second part counts only if the first one, in the
  // word below it, was equal, too.
  ALWAYS_INLINE void find_fields(std::uint64_t fingerprint, LineVector& equal) const noexcept {
    LineVector rest, whole, ended, different, unequal_firsts, below;
    load(rest, pattern_.rest);
    load(whole, pattern_.whole);
    load(ended, pattern_.ended);
    repeat(fingerprint, different);
    different ^= words_;
    different |= (different & rest) + rest;
    unequal_firsts = (LineVector)((SignedLineVector)different >> 63);
    raise(unequal_firsts, unequal_firsts, below);
    equal = (whole | (ended & ~below)) & ~different;
    if constexpr (!kAlone || kCounted) equal &= own_;
  }

  ALWAYS_INLINE void push_at(unsigned bit, std::uint64_t fingerprint,
                             const LineVector& reach) noexcept {
    LineVector moved, repeated, front;
    move(LineVector{}, moved);
    repeat(fingerprint, repeated);
    first_bits(front, bit + width_);
    words_ = (words_ & ~reach) | (reach & ((moved & ~front) | (repeated & front)));
  }

  const FieldPattern& pattern_;
  unsigned width_, length_, start_;
  LineVector words_, own_;  // the line, and a mask of the queue's bits
#undef ALWAYS_INLINE
};

using FingerprintQueue = BasicFingerprintQueue<false>;

}  // namespace streamfilter
