#include "core/kind/exa_log_log_tokens.hpp"

#include <algorithm>
#include <bit>

#include "core/base/layer_wall.hpp"

namespace streamfilter::exa_log_log {
namespace {

using namespace exa_log_log_model;

constexpr unsigned kFine = 7;  // bits that a payload keeps as they are
constexpr unsigned kMaxZeros = 64 - kSub;
constexpr unsigned kMaxCode = (1u << kFine) + kMaxZeros - kFine;

unsigned code(std::uint32_t payload) noexcept { return payload >> kSub; }
bool is_fine(std::uint32_t payload) noexcept { return code(payload) < 1u << kFine; }

// Leading zeros of the random bits of the update value.
unsigned zeros(std::uint32_t payload) noexcept {
  const unsigned c = code(payload);
  return is_fine(payload) ? kFine - static_cast<unsigned>(std::bit_width(c))
                          : c - (1u << kFine) + kFine;
}

}  // namespace

bool is_payload(std::uint32_t payload) noexcept {
  const unsigned c = code(payload);
  return c > 0 && c <= kMaxCode;
}

unsigned Token::update_value() const noexcept {
  return (zeros(payload) << kSub) + (payload & ((1u << kSub) - 1)) + 1;
}

unsigned Token::exponent() const noexcept {
  constexpr unsigned kHomeBits = 1;
  return kHomeBits + kSub + (is_fine(payload) ? kFine : std::min(zeros(payload) + 1, kMaxZeros));
}

Token token_of(std::uint64_t hash, std::uint64_t registers) noexcept {
  const std::uint64_t bits = mix64(hash + 2 * kGoldenRatio);
  const unsigned fine = static_cast<unsigned>(bits >> (64 - kFine)),
                 more = (update_value(bits) - 1) >> kSub;  // zeros
  const unsigned c = fine > 0 ? fine : (1u << kFine) + more - kFine;
  return {position(hash, 0, 2 * registers),
          c << kSub | static_cast<unsigned>(bits & ((1u << kSub) - 1))};
}

TokenView::Position TokenView::find(Token token) const noexcept {
  std::uint64_t slot = token.home;
  for (unsigned distance = 0;; ++distance, slot = next(slot)) {
    const unsigned there = read(slot), its_distance = there >> kPayloadBits,
                   mine = distance << kPayloadBits | token.payload;
    if (there == mine) return {slot, distance, true};
    // It comes before one of a later home, which is less far from that, or of a larger payload.
    if (there == 0 || its_distance < distance || (its_distance == distance && there > mine) ||
        distance > kMaxDistance)
      return {slot, distance, false};
  }
}

bool TokenView::can_move_on(std::uint64_t slot) const noexcept {
  for (unsigned bits; (bits = read(slot)) != 0; slot = next(slot))
    if (bits >> kPayloadBits == kMaxDistance) return false;
  return true;
}

bool TokenView::is_possible(std::uint64_t tokens) const noexcept {
  if (tokens > most()) return false;
  std::uint64_t found = 0;
  unsigned before = read(slots_ - 1);
  for (std::uint64_t slot = 0; slot < slots_; ++slot) {
    const unsigned bits = read(slot), distance = bits >> kPayloadBits,
                   its_distance = before >> kPayloadBits;
    if (bits != 0) {
      ++found;
      if (!is_payload(bits & kPayloadMask) || distance >= slots_) return false;
      // An entry away from home follows one that has to come first.
      if (distance > 0) {
        const bool same_home = distance == its_distance + 1;
        if (before == 0 || distance > its_distance + 1) return false;
        if (same_home && (before & kPayloadMask) >= (bits & kPayloadMask)) return false;
      }
    }
    before = bits;
  }
  return found == tokens;
}

Added TokenTable::add(Token token, std::uint64_t tokens) const noexcept {
  const Position place = find(token);
  if (place.found) return Added::was_there;
  if (tokens == most() || place.distance > kMaxDistance || !can_move_on(place.slot))
    return Added::no_room;
  unsigned moved = place.distance << kPayloadBits | token.payload;
  for (std::uint64_t slot = place.slot; moved != 0; slot = next(slot)) {
    const unsigned there = read(slot);
    write(slot, moved);
    moved = there == 0 ? 0 : there + (1u << kPayloadBits);
  }
  return Added::is_new;
}

// The tokens of a register lie in its own two slots or behind them, those of all registers in their
// order, and none has passed an empty slot. From there on each register's are read before it is
// written, and so are those that lie where it will.
void TokenTable::become_registers() const noexcept {
  const std::uint64_t registers = slots() / 2;
  std::uint64_t empty = 0;
  while (read(empty) != 0) ++empty;
  // Its first slot is the empty one, or the one behind.
  std::uint64_t index = (empty + 1) / 2 % registers, slot = 2 * index, done = 0;  // slots
  for (std::uint64_t i = 1; i <= registers; ++i) {
    Register made = 0;
    for (; done < slots(); ++done, slot = next(slot)) {
      const Token token = at(slot);
      const bool is_its = token.payload != 0 && token.register_index() == index;
      if (!is_its && done >= 2 * i) break;
      if (is_its) made = updated(made, token.update_value());
    }
    std::memcpy(body_ + index * sizeof made, &made, sizeof made);
    index = index + 1 == registers ? 0 : index + 1;
  }
}

}  // namespace streamfilter::exa_log_log
