// Functions of kind ell for callers that do not go through the table of kinds.
#pragma once

#include "core/format/layout.hpp"
#include "core/model/exa_log_log_model.hpp"

namespace streamfilter::exa_log_log {

// Few keys of kind ell, counted nearly exactly: tokens, in the memory that registers will use later
// (the idea is §2.5 of Ertl 2024; the table is our own). A token keeps more of a key than any
// register does, so registers follow from tokens, to the last bit.
//
// Two cells of 16 bits lie where a register will be. A key's home is one of the two cells of its
// register. Its token lies there or as near behind as there is room, ordered by home, then by
// payload. A cell is 0, or 6 bits of distance from home above 10 bits of payload:
//
//   2 bits   the last two of the update value's random bits
//   8 bits   the first seven of these if they are not all zero, 1..127; else 128 + how many more
//            zeros there are
//
// The order of keys changes neither the table nor whether there is room: at most 7/8 of the cells
// are used, and none is further than 63 from its home. So it does not change the registers either.

using Slot = std::uint16_t;
using Register = std::uint32_t;
using exa_log_log_model::kSub;

// Payload: bits kept as they are, bits of the count of zeros, and the greatest count they can hold.
constexpr unsigned kFine = 7, kMaxZeros = 64 - kSub, kMaxCode = (1u << kFine) + kMaxZeros - kFine;

struct Token {
  std::uint64_t home;     // cell
  std::uint32_t payload;  // never 0

  std::uint64_t register_index() const noexcept { return home / 2; }
  unsigned code() const noexcept { return payload >> kSub; }
  bool is_fine() const noexcept { return code() < 1u << kFine; }
  // Leading zeros of the update value's random bits.
  unsigned zeros() const noexcept {
    return is_fine() ? kFine - static_cast<unsigned>(std::bit_width(code()))
                     : code() - (1u << kFine) + kFine;
  }
  unsigned update_value() const noexcept {
    return (zeros() << kSub) + (payload & ((1u << kSub) - 1)) + 1;
  }
  // Its probability among the keys of its register is 2^-exponent.
  unsigned exponent() const noexcept {
    constexpr unsigned kHomeBits = 1;
    return kHomeBits + kSub + (is_fine() ? kFine : std::min(zeros() + 1, kMaxZeros));
  }
};

// True if a token can have this payload.
inline bool is_payload(std::uint32_t payload) noexcept {
  return payload >> kSub > 0 && payload >> kSub <= kMaxCode;
}

inline Token token_of(std::uint64_t hash, std::uint64_t registers) noexcept {
  const std::uint64_t bits = mix64(hash + 2 * kGoldenRatio);
  const unsigned fine = static_cast<unsigned>(bits >> (64 - kFine)),
                 more = (exa_log_log_model::update_value(bits) - 1) >> kSub;  // zeros
  const unsigned code = fine > 0 ? fine : (1u << kFine) + more - kFine;
  return {position(hash, 0, 2 * registers),
          code << kSub | static_cast<unsigned>(bits & ((1u << kSub) - 1))};
}

constexpr std::uint64_t most_tokens(std::uint64_t cells) noexcept { return cells - cells / 8; }
constexpr unsigned kMaxDistance = 63;

enum class Added { is_new, was_there, no_room };

// A view of the bytes of a slice's body.
class TokenView {
 public:
  TokenView(const unsigned char* body, std::uint64_t registers) noexcept
      : body_(body), cells_(2 * registers) {}

  std::uint64_t cells() const noexcept { return cells_; }
  std::uint64_t most() const noexcept { return most_tokens(cells_); }

  bool contains(Token token) const noexcept { return find(token).found; }

  // The token in a cell; payload 0: the cell is empty.
  Token at(std::uint64_t cell) const noexcept {
    const unsigned bits = read(cell), distance = bits >> kPayloadBits;
    return {(cell >= distance ? cell : cell + cells_) - distance, bits & kPayloadMask};
  }

  // True if some set of `tokens` keys makes this table.
  bool is_possible(std::uint64_t tokens) const noexcept;

 protected:
  static constexpr unsigned kPayloadBits = 10, kPayloadMask = (1u << kPayloadBits) - 1;
  struct Position {
    std::uint64_t cell;
    unsigned distance;
    bool found;
  };

  unsigned read(std::uint64_t cell) const noexcept {
    Slot bits;
    std::memcpy(&bits, body_ + cell * sizeof bits, sizeof bits);
    return bits;
  }
  std::uint64_t next(std::uint64_t cell) const noexcept {
    return cell + 1 == cells_ ? 0 : cell + 1;
  }

  // The place of the token, or the place where it would be inserted.
  Position find(Token token) const noexcept;
  // True if all tokens from here to the next empty cell can move on by one.
  bool can_move_on(std::uint64_t cell) const noexcept;

 private:
  const unsigned char* body_;
  std::uint64_t cells_;
};

class TokenTable : public TokenView {
 public:
  TokenTable(unsigned char* body, std::uint64_t registers) noexcept
      : TokenView(body, registers), body_(body) {}

  // `tokens` is the number so far.
  Added add(Token token, std::uint64_t tokens) const noexcept;

  // Turns the table into registers, in place.
  void become_registers() const noexcept;

 private:
  void write(std::uint64_t cell, unsigned value) const noexcept {
    const Slot bits = static_cast<Slot>(value);
    std::memcpy(body_ + cell * sizeof bits, &bits, sizeof bits);
  }

  unsigned char* body_;
};

// ---- registers ----------------------------------------------------------------------------------

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
