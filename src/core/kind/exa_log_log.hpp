// Functions of kind ell for callers that do not go through the table of kinds.
#pragma once

#include "core/format/layout.hpp"
#include "core/kind/exa_log_log_tokens.hpp"

namespace streamfilter::exa_log_log {

// What a key does to a register.
struct Update {
  Update(std::uint64_t hash, std::uint64_t registers) noexcept
      : at(position(hash, 0, registers) * sizeof(Register)),
        value(exa_log_log_model::update_value(mix64(hash + 2 * kGoldenRatio))) {}
  explicit Update(Token token) noexcept
      : at(token.register_index() * sizeof(Register)), value(token.update_value()) {}

  std::uint64_t at;  // byte of the body
  unsigned value;
};

inline Register read(const unsigned char* body, std::uint64_t at) noexcept {
  Register value;
  std::memcpy(&value, body + at, sizeof value);
  return value;
}

inline bool would_change_nothing(Slice slice, Update update) noexcept {
  const Register before = read(slice.body(), update.at);
  return exa_log_log_model::updated(before, update.value) == before;
}

// Returns true if the register did not change.
inline bool update_register(Slice slice, Update update) noexcept {
  const Register before = read(slice.body(), update.at),
                 after = exa_log_log_model::updated(before, update.value);
  if (after == before) return true;
  std::memcpy(slice.body() + update.at, &after, sizeof after);
  return false;
}

// Adds a token, or to registers what they keep of it. Returns true if it was there. Does not change
// the counters.
bool add_token(const Parameters& p, Slice slice, Token token) noexcept;

bool is_of_tokens(ConstSlice slice) noexcept;

// True if the slice holds `tokens` tokens, no copies among them, one for each key called new.
bool holds_tokens(const Parameters& p, ConstSlice slice, std::uint64_t& count) noexcept;

// Lists the tokens of such a slice.
template <typename Visit>
void for_each_token(const Parameters& p, ConstSlice slice, Visit visit) noexcept {
  const TokenView view(slice.body(), p.integer(0));
  for (std::uint64_t i = 0; i < view.cells(); ++i)
    if (const Token token = view.at(i); token.payload != 0) visit(token);
}

}  // namespace streamfilter::exa_log_log
