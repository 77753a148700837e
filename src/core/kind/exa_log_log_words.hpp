// Few keys of kind ell outside of a filter: a word is a token and its slice as one number. A set of
// words determines a filter to the last bit, except for its counters.
#pragma once

#include "core/kind/exa_log_log.hpp"

namespace streamfilter::exa_log_log {

// Never 0. Ordered by slice, home and payload.
using Word = std::uint32_t;

constexpr unsigned kWordPayloadBits = 10;
constexpr std::uint64_t kMaxPlaces = std::uint64_t{1} << (32 - kWordPayloadBits);

// Homes in all slices of a filter.
std::uint64_t places_of(const Parameters& p) noexcept;

// True for kind ell with at most as many homes as words can name.
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

// Adds words to a filter like the keys that they stand for, but does not change the counters.
void add_words(Header* filter, const Word* words, std::uint32_t count) noexcept;
inline void add_word(Header* filter, Word word) noexcept { add_words(filter, &word, 1); }

// Probability that a new key changes any register, or token, of the filter.
double change_of(const Header* filter) noexcept;

// Does the same as add_word, and updates that probability. Returns true if the word was there.
bool add_word(Header* filter, Word word, double& change) noexcept;

// By how much a new word lowers the probability while there are only words.
double share_of(const Parameters& p, Word word) noexcept;

// A set in the host's memory: a table of words whose size is a power of two; 0: free. The host
// keeps it at most 3/4 full.
struct WordTable {
  Word* words;
  unsigned bits;

  std::uint32_t size() const noexcept { return std::uint32_t{1} << bits; }
  bool has_room(std::uint32_t count) const noexcept { return count < size() / 4 * 3; }

  std::uint32_t home_of(Word word) const noexcept { return word * 0x9e3779b1u >> (32 - bits); }

  // Returns true if it was there.
  bool add(Word word) const noexcept {
    const std::uint32_t mask = size() - 1;
    for (std::uint32_t at = home_of(word);; at = (at + 1) & mask) {
      if (words[at] == word) return true;
      if (words[at] != 0) continue;
      words[at] = word;
      return false;
    }
  }
};

// The number of keys behind `count` words, as the filter made of them would estimate it. `scratch`:
// an empty entry for each slice.
double distinct_words(const Parameters& p, const Word* words, std::size_t places,
                      std::uint32_t count, exa_log_log_model::Likelihood* scratch) noexcept;

// True if a filter has room for the tokens of sorted words; otherwise it would use registers.
bool have_room(const Parameters& p, const Word* words, std::uint32_t count) noexcept;

// True if there are so few words that each is a key. Then distinct_words() is `count`, rounded.
bool are_few(const Parameters& p, std::uint32_t count) noexcept;

}  // namespace streamfilter::exa_log_log
