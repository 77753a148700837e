#include "core/kind/exa_log_log_words.hpp"

#include "core/kind/exa_log_log.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::exa_log_log {

std::uint64_t places_of(const Parameters& p) noexcept { return p.slices * 2 * p.integer(0); }

bool has_words(const Parameters& p) noexcept {
  return p.kind == Kind::ell && p.k1 == 0 && places_of(p) <= kMaxPlaces;
}

void add_word(Header* filter, Word word) noexcept {
  const Parameters& p = filter->parameters;
  const std::uint64_t place = word >> kWordPayloadBits, homes = 2 * p.integer(0);
  const Token token = {place % homes, word & ((1u << kWordPayloadBits) - 1)};
  add_token(p, slice_at(filter, static_cast<std::uint32_t>(place / homes)), token);
}

double distinct_words(const Parameters& p, const Word* words, std::size_t places,
                      std::uint32_t count, exa_log_log_model::Likelihood* scratch) noexcept {
  if (are_few(p, count)) return count;
  for (std::uint32_t i = 0; i < p.slices; ++i) scratch[i].add_empty(p.integer(0));
  for (std::size_t i = 0; i < places; ++i)
    if (words[i] != 0)
      scratch[slice_of_word(p, words[i])].add_token(
          Token{0, words[i] & ((1u << kWordPayloadBits) - 1)}.exponent());
  double sum = 0;
  for (std::uint32_t i = 0; i < p.slices; ++i) sum += scratch[i].distinct();
  return sum;
}

// Of n tokens in m registers, each of probability 1/16 at most, the likelihood makes less than
// n + n * n / (15 * m): rounded n as long as n * n is below 4 * m.
bool are_few(const Parameters& p, std::uint32_t count) noexcept {
  return std::uint64_t{count} * count <= 4 * p.integer(0);
}

}  // namespace streamfilter::exa_log_log
