#include "core/kind/exa_log_log_words.hpp"

#include "core/kind/kind_registry.hpp"

namespace streamfilter::exa_log_log {

std::uint64_t places_of(const Parameters& p) noexcept { return p.slices * 2 * p.integer(0); }

bool has_words(const Parameters& p) noexcept {
  return p.kind == Kind::ell && p.k1 == 0 && places_of(p) <= kMaxPlaces;
}

using exa_log_log_model::Likelihood;

static double change_of_register(const unsigned char* at) noexcept {
  Likelihood one;
  one.add_registers(at, 1);
  return one.change();
}

void add_words(Header* filter, const Word* words, std::uint32_t count) noexcept {
  const Parameters& p = filter->parameters;
  for (std::uint32_t i = 0; i < count;) {
    const std::uint32_t at = slice_of_word(p, words[i]);
    const Slice slice = slice_at(filter, at);
    const bool has_tokens = is_of_tokens(as_const(slice));
    for (; i < count && slice_of_word(p, words[i]) == at; ++i) {
      const Token token = token_in(p, words[i]);
      if (has_tokens)
        add_token(p, slice, token);
      else
        update_register(slice, Update(token));
    }
  }
}

double change_of(const Header* filter) noexcept {
  const Parameters& p = filter->parameters;
  double sum = 0;
  for (std::uint32_t i = 0; i < p.slices; ++i)
    sum += 1 - find_ops(p.kind)->estimate(p, slice_at(filter, i)).fpr;
  return sum / p.slices;
}

double share_of(const Parameters& p, Word word) noexcept {
  return std::ldexp(1, -static_cast<int>(token_in(p, word).exponent())) /
         (to_real(places_of(p)) / 2);
}

bool add_word(Header* filter, Word word, double& change) noexcept {
  const Parameters& p = filter->parameters;
  const Slice slice = slice_at(filter, slice_of_word(p, word));
  const Token token = token_in(p, word);
  const bool had_tokens = is_of_tokens(as_const(slice));
  const Update update(token);
  const unsigned char* at = slice.body() + update.at;
  // Most keys of a long stream change nothing: return early.
  if (!had_tokens && would_change_nothing(slice, update)) return true;
  const double before = had_tokens ? 0 : change_of_register(at);
  if (add_token(p, slice, token)) return true;
  if (!had_tokens)
    change -= (before - change_of_register(at)) / (to_real(places_of(p)) / 2);
  else if (is_of_tokens(as_const(slice)))
    change -= share_of(p, word);
  else
    change = change_of(filter);
  return false;
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

// True if each word finds a cell at its home or behind, not too far away. Words that find no cell
// before the end go on at the beginning, hence two rounds.
static bool have_room_in_slice(std::uint64_t cells, std::uint64_t start, const Word* words,
                               std::uint64_t count) noexcept {
  if (count > most_tokens(cells)) return false;
  if (count <= kMaxDistance + 1) return true;
  std::uint64_t next = 0;  // cell
  for (unsigned round = 0; round < 2; ++round) {
    next = next > cells ? next - cells : 0;
    for (std::uint64_t i = 0; i < count; ++i, ++next) {
      const std::uint64_t home = (words[i] >> kWordPayloadBits) - start;
      next = std::max(next, home);
      if (next - home > kMaxDistance) return false;
    }
  }
  return true;
}

bool have_room(const Parameters& p, const Word* words, std::uint32_t count) noexcept {
  const std::uint64_t cells = 2 * p.integer(0);
  const Word* const end = words + count;
  while (words < end) {
    const std::uint32_t slice = slice_of_word(p, *words);
    const Word* last = p.slices == 1 ? end : std::find_if(words, end, [&](Word word) {
      return slice_of_word(p, word) != slice;
    });
    if (!have_room_in_slice(cells, slice * cells, words, static_cast<std::uint64_t>(last - words)))
      return false;
    words = last;
  }
  return true;
}

// For n tokens in m registers, each of probability 1/16 at most, the estimate is less than n + n *
// n / (15 * m): it rounds to n while n * n is below 4 * m.
bool are_few(const Parameters& p, std::uint32_t count) noexcept {
  return std::uint64_t{count} * count <= 4 * p.integer(0);
}

}  // namespace streamfilter::exa_log_log
