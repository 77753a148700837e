// A filter of kind ell that holds few keys, in bytes that follow their number: the form of small
// values, and of states of aggregates that travel. It is decoded where it comes in; nothing works
// on it as it is.
//
//   0    host's word
//   4    kCompactMagic
//   8    version of this form, 1
//   9    kind
//   10   1: insertions beyond one for each key follow; else 0
//   11   the parameters, as in a packed header; numbers of variable length: those insertions of
//        each slice, how many keys
//   …    the tokens in the order of their words (exa_log_log_words.hpp), as places with their
//        payload (core/bits/rice_bits.hpp), and 0 bits up to a whole byte; the parameter of the
//        code follows from the numbers
//
// Everything else follows: a filter that differs from what its compact form gives back has none.
#pragma once

#include "core/bits/rice_bits.hpp"
#include "core/filter/packed_header.hpp"
#include "core/kind/exa_log_log_words.hpp"

namespace streamfilter {

using exa_log_log::Word;

constexpr std::uint32_t kCompactMagic = 0x434c4653;  // "SFLC"
constexpr std::uint8_t kCompactVersion = 1;
constexpr std::size_t kLeastCompact = 14;
constexpr Kind kKindOfWords = Kind::ell;  // the words of this form are those of its slices

// Are these the bytes behind the host's word of a compact form?
inline bool is_compact(const void* body, std::size_t length) noexcept {
  std::uint32_t magic;
  if (length < kLeastCompact - kHostWord) return false;
  std::memcpy(&magic, body, sizeof magic);
  return magic == kCompactMagic;
}

// Are they, of a version that we know? Errors: corrupt, newer_version.
bool is_readable(const void* body, std::size_t length, Problem& problem) noexcept;

// Is it the compact form of this file? Another kind has that of sparse_form.hpp.
inline bool has_words(const void* body, std::size_t length) noexcept {
  return is_compact(body, length) &&
         static_cast<const unsigned char*>(body)[5] == static_cast<unsigned char>(kKindOfWords);
}

// State of the random numbers of a fresh slice.
inline std::uint64_t fresh_random(const Parameters& p, std::uint32_t index) noexcept {
  return mix64(p.seed ^ (index + 1) * kGoldenRatio);
}

// Number of the filter's words; false if it has no compact form.
bool count_words(const Header* header, std::uint32_t& count) noexcept;
// The words, in their order.
void list_words(const Header* header, Word* words) noexcept;
void sort_words(Word* words, std::uint32_t count) noexcept;

// Writes sorted words, and the elements inserted into each slice; nullptr: as many as keys. Returns
// the number of bytes; writes at most `room` of them, so 0 only counts.
std::size_t write_compact(const Parameters& p, const Word* words, std::uint32_t count,
                          const std::uint64_t* insertions, unsigned char* bytes,
                          std::size_t room) noexcept;

// Bytes that suffice for any words, and for the fastest way of writing.
std::size_t most_compact(const Parameters& p, std::uint32_t count) noexcept;

// Insertions of each slice, as write_compact takes them.
inline void list_insertions(const Header* header, std::uint64_t* insertions) noexcept {
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    insertions[i] = slice_at(header, i).state->insertions;
}

// Reads any bytes: open(), then next() until it returns 0, then finish(); can be reused.
class CompactReader {
 public:
  // Takes the bytes behind the host's word, without a copy. Errors: corrupt, newer_version.
  bool open(const void* body, std::size_t length, Problem& problem) noexcept;

  const Parameters& parameters() const noexcept { return parameters_.parameters(); }
  std::uint32_t count() const noexcept { return count_; }

  // Insertions into a slice beyond one for each of its keys.
  std::uint64_t repeats(std::uint32_t slice) const noexcept;

  // Reads up to `most` words. Returns their number; 0: no more, or damaged bytes.
  std::uint32_t next(Word* words, std::uint32_t most) noexcept;
  bool next(Word& word) noexcept { return next(&word, 1) > 0; }

  // Call after the last word. Errors: corrupt.
  bool finish(Problem& problem) const noexcept;

 private:
  bool read_repeats() noexcept;

  const unsigned char* at_ = nullptr;
  const unsigned char* end_ = nullptr;
  const unsigned char* repeats_ = nullptr;
  ParametersReader parameters_;
  std::uint32_t count_ = 0, done_ = 0;
  unsigned rice_ = 0;
  std::uint64_t bit_ = 0;  // of the keys, which begin at at_: the first that is not read
  std::uint64_t place_ = 0, places_ = 0;
  Word word_ = 0;
  bool is_sound_ = true;
};

// Adds an open reader's keys to a filter that it is mergeable with; settle_slice follows. Errors:
// corrupt, with some keys added.
bool merge_compact(CompactReader& reader, Header* into, Problem& problem) noexcept;

// Makes the filter of an open reader, in a block that format() has been used on.
// Errors: corrupt.
bool read_compact(CompactReader& reader, Header* filter, Problem& problem) noexcept;

}  // namespace streamfilter
