// A filter of kind ell that holds few keys, in bytes that follow their number: the form of small
// values, and of states of aggregates that travel. It is decoded where it comes in; nothing works
// on it as it is.
//
//   0    host's word
//   4    kCompactMagic
//   8    version of this form, 1
//   9    kind
//   10   flags: what follows
//   11   numbers of variable length, 7 bits each byte, the lower first: memory; those flagged, seed
//        in 8 bytes; how many keys
//   …    the tokens in the order of their words (exa_log_log_words.hpp), as bits, the lowest of a
//        byte first, and 0 bits up to a whole byte: how much further the place is than the one
//        before, by a Golomb-Rice code whose parameter follows from the numbers; then the payload
//
// Everything else follows: a filter that differs from what its compact form gives back has none.
#pragma once

#include "core/filter/filter.hpp"
#include "core/kind/exa_log_log_words.hpp"

namespace streamfilter {

using exa_log_log::Word;

constexpr std::uint32_t kCompactMagic = 0x434c4653;  // "SFLC"
constexpr std::uint8_t kCompactVersion = 1;
constexpr std::size_t kLeastCompact = 13;

inline bool is_compact(const void* bytes, std::size_t length) noexcept {
  std::uint32_t magic;
  if (length < kLeastCompact) return false;
  std::memcpy(&magic, static_cast<const unsigned char*>(bytes) + 4, sizeof magic);
  return magic == kCompactMagic;
}

// Do these parameters follow from what a compact form says of them?
bool has_compact_form(const Parameters& p) noexcept;

// How many words the filter is; false: it has no compact form.
bool count_words(const Header* header, std::uint32_t& count) noexcept;
// They, in their order.
void list_words(const Header* header, Word* words) noexcept;
void sort_words(Word* words, std::uint32_t count) noexcept;

// Sorted words and the elements inserted into each slice; nullptr: as many as keys. Returns how
// many bytes; writes no more than `room` of them, so that 0 asks.
std::size_t write_compact(const Parameters& p, const Word* words, std::uint32_t count,
                          const std::uint64_t* insertions, unsigned char* bytes,
                          std::size_t room) noexcept;

// The insertions of each slice, as write_compact takes them.
inline void list_insertions(const Header* header, std::uint64_t* insertions) noexcept {
  for (std::uint32_t i = 0; i < header->parameters.slices; ++i)
    insertions[i] = slice_at(header, i).state->insertions;
}

// Reads any bytes: open(), then next() until it says no, then is_sound().
class CompactReader {
 public:
  // Errors: corrupt, newer_version. The bytes stay where they are.
  bool open(const void* bytes, std::size_t length, Problem& problem) noexcept;

  const Parameters& parameters() const noexcept { return parameters_; }
  std::uint32_t count() const noexcept { return count_; }

  // Of a slice, beside one for each of its keys.
  std::uint64_t repeats(std::uint32_t slice) const noexcept;

  bool next(Word& word) noexcept;

  // After the last word. Errors: corrupt.
  bool finish(Problem& problem) const noexcept;

 private:
  bool read_number(std::uint64_t& number) noexcept;
  bool read_parameters() noexcept;
  bool read_repeats() noexcept;
  std::uint64_t take(unsigned bits) noexcept;
  bool take_gap(std::uint64_t& gap) noexcept;
  bool is_at_end() const noexcept;

  const unsigned char* at_ = nullptr;
  const unsigned char* end_ = nullptr;
  const unsigned char* repeats_ = nullptr;
  Parameters parameters_;
  std::uint32_t count_ = 0, done_ = 0;
  unsigned flags_ = 0, rice_ = 0, bit_ = 0;
  std::uint64_t place_ = 0;
  Word word_ = 0;
  bool is_sound_ = true;
};

// The filter of an open reader, in memory of parameters().memory bytes that format() has been used
// on. Errors: corrupt.
bool read_compact(CompactReader& reader, Header* filter, Problem& problem) noexcept;

}  // namespace streamfilter
