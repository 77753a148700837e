// Few keys of kind ell, nearly exactly: tokens, in the memory that registers will have (the idea
// is §2.5 of Ertl 2024; the table is our own). A token says of a key more than any register will
// keep, so that the registers follow from it, to the last bit.
//
// Two slots of 16 bits lie where a register will be. A key's home is one of the two slots of its
// register; its token lies there or as near behind as there is room, in the order of homes, and of
// equal homes in that of payloads. A slot is 0, or 6 bits of distance from home over 10 of payload:
//
//   2 bits   the last two of the update value's random bits
//   8 bits   the first seven of these if they are not all zero, 1..127; else 128 + how many more
//            zeros there are
//
// The table of a set of keys does not depend on their order; nor does whether it has room: at most
// 7/8 of the slots are used, none further from home than 63. So do the registers not.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/hash.hpp"
#include "core/model/exa_log_log_model.hpp"

namespace streamfilter::exa_log_log {

using Slot = std::uint16_t;
using Register = std::uint32_t;

struct Token {
  std::uint64_t home;     // slot
  std::uint32_t payload;  // never 0

  std::uint64_t register_index() const noexcept { return home / 2; }
  unsigned update_value() const noexcept;
  // It comes with probability 2^-exponent among the keys of its register.
  unsigned exponent() const noexcept;
};

Token token_of(std::uint64_t hash, std::uint64_t registers) noexcept;

// Is this a payload that a token can have?
bool is_payload(std::uint32_t payload) noexcept;

enum class Added { is_new, was_there, no_room };

// Over the bytes of a slice's body.
class TokenView {
 public:
  TokenView(const unsigned char* body, std::uint64_t registers) noexcept
      : body_(body), slots_(2 * registers) {}

  std::uint64_t slots() const noexcept { return slots_; }
  std::uint64_t most() const noexcept { return slots_ - slots_ / 8; }

  bool contains(Token token) const noexcept { return find(token).found; }

  // The token in a slot; payload 0: none.
  Token at(std::uint64_t slot) const noexcept {
    const unsigned bits = read(slot), distance = bits >> kPayloadBits;
    return {(slot >= distance ? slot : slot + slots_) - distance, bits & kPayloadMask};
  }

  // Is this what keys could make, and so many?
  bool is_possible(std::uint64_t tokens) const noexcept;

 protected:
  static constexpr unsigned kPayloadBits = 10, kPayloadMask = (1u << kPayloadBits) - 1,
                            kMaxDistance = 63;
  struct Position {
    std::uint64_t slot;
    unsigned distance;
    bool found;
  };

  unsigned read(std::uint64_t slot) const noexcept {
    Slot bits;
    std::memcpy(&bits, body_ + slot * sizeof bits, sizeof bits);
    return bits;
  }
  std::uint64_t next(std::uint64_t slot) const noexcept {
    return slot + 1 == slots_ ? 0 : slot + 1;
  }

  // Where the token is, or would be.
  Position find(Token token) const noexcept;
  // Can all from here to the next empty slot move on by one?
  bool can_move_on(std::uint64_t slot) const noexcept;

 private:
  const unsigned char* body_;
  std::uint64_t slots_;
};

class TokenTable : public TokenView {
 public:
  TokenTable(unsigned char* body, std::uint64_t registers) noexcept
      : TokenView(body, registers), body_(body) {}

  // `tokens` are there so far.
  Added add(Token token, std::uint64_t tokens) const noexcept;

  // Turns the table into registers, where it is.
  void become_registers() const noexcept;

 private:
  void write(std::uint64_t slot, unsigned value) const noexcept {
    const Slot bits = static_cast<Slot>(value);
    std::memcpy(body_ + slot * sizeof bits, &bits, sizeof bits);
  }

  unsigned char* body_;
};

}  // namespace streamfilter::exa_log_log
