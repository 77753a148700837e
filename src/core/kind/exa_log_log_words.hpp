// Few keys of kind ell apart from any filter: a token and its slice as one number. From a set of
// these a filter follows, to the last bit, but for its counters.
#pragma once

#include <bit>
#include <cstdint>

#include "core/format/layout.hpp"
#include "core/kind/exa_log_log_tokens.hpp"

namespace streamfilter::exa_log_log {

// Never 0. In their order: by slice, home and payload.
using Word = std::uint32_t;

constexpr unsigned kWordPayloadBits = 10;
constexpr std::uint64_t kMaxPlaces = std::uint64_t{1} << (32 - kWordPayloadBits);

// Homes in all slices of a filter.
std::uint64_t places_of(const Parameters& p) noexcept;

// Is it of kind ell, with no more of them than words can say?
bool has_words(const Parameters& p) noexcept;

inline Word word_of(const Parameters& p, std::uint64_t hash) noexcept {
  const std::uint64_t registers = p.integer(0);
  const Token token = token_of(hash, registers);
  const std::uint64_t slice = p.slices > 1 ? slice_of(p, hash) : 0;
  return static_cast<Word>((slice * 2 * registers + token.home) << kWordPayloadBits) |
         token.payload;
}

inline std::uint32_t slice_of_word(const Parameters& p, Word word) noexcept {
  return p.slices > 1 ? (word >> kWordPayloadBits) / static_cast<std::uint32_t>(2 * p.integer(0))
                      : 0;
}

inline Token token_in(const Parameters& p, Word word) noexcept {
  const std::uint32_t place = word >> kWordPayloadBits;
  return {p.slices > 1 ? place % static_cast<std::uint32_t>(2 * p.integer(0)) : place,
          word & ((1u << kWordPayloadBits) - 1)};
}

// Adds them to a filter as their keys would be, but for the counters.
void add_words(Header* filter, const Word* words, std::uint32_t count) noexcept;
inline void add_word(Header* filter, Word word) noexcept { add_words(filter, &word, 1); }

// The probability that a new key changes any register, or token, of the filter.
double change_of(const Header* filter) noexcept;

// The same as add_word, with that probability kept up to date. Was it there?
bool add_word(Header* filter, Word word, double& change) noexcept;

// By how much a word that is new lowers the probability while there are words alone.
double share_of(const Parameters& p, Word word) noexcept;

// A set in memory of the host: a table of a power of two of words, 0 where there is none. The host
// keeps it at most 3/4 full.
struct WordTable {
  Word* words;
  unsigned bits;

  std::uint32_t size() const noexcept { return std::uint32_t{1} << bits; }
  bool has_room(std::uint32_t count) const noexcept { return count < size() / 4 * 3; }

  // Was it there?
  bool add(Word word) const noexcept {
    const std::uint32_t mask = size() - 1;
    for (std::uint32_t at = word * 0x9e3779b1u >> (32 - bits);; at = (at + 1) & mask) {
      if (words[at] == word) return true;
      if (words[at] != 0) continue;
      words[at] = word;
      return false;
    }
  }
};

// How many keys so many words are, of a filter of these parameters: what the filter says that
// follows from them. `scratch`: as many as slices, all empty.
double distinct_words(const Parameters& p, const Word* words, std::size_t places,
                      std::uint32_t count, exa_log_log_model::Likelihood* scratch) noexcept;

// Has a filter room for the tokens of sorted words, or would it make registers of them?
bool have_room(const Parameters& p, const Word* words, std::uint32_t count) noexcept;

// So few that each is a key: distinct_words() comes to `count`, rounded.
bool are_few(const Parameters& p, std::uint32_t count) noexcept;

}  // namespace streamfilter::exa_log_log
