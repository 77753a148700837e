#include "core/kind/exa_log_log_tokens.hpp"

#include "core/base/layer_wall.hpp"

namespace streamfilter::exa_log_log {

using namespace exa_log_log_model;

TokenView::Position TokenView::find(Token token) const noexcept {
  std::uint64_t cell = token.home;
  for (unsigned distance = 0;; ++distance, cell = next(cell)) {
    const unsigned there = read(cell), its_distance = there >> kPayloadBits,
                   mine = distance << kPayloadBits | token.payload;
    if (there == mine) return {cell, distance, true};
    // Entries are ordered by home, then payload: a later home shows as a smaller distance.
    if (there == 0 || its_distance < distance || (its_distance == distance && there > mine) ||
        distance > kMaxDistance)
      return {cell, distance, false};
  }
}

bool TokenView::can_move_on(std::uint64_t cell) const noexcept {
  for (unsigned bits; (bits = read(cell)) != 0; cell = next(cell))
    if (bits >> kPayloadBits == kMaxDistance) return false;
  return true;
}

bool TokenView::is_possible(std::uint64_t tokens) const noexcept {
  if (tokens > most()) return false;
  std::uint64_t found = 0;
  unsigned before = read(cells_ - 1);
  for (std::uint64_t cell = 0; cell < cells_; ++cell) {
    const unsigned bits = read(cell), distance = bits >> kPayloadBits,
                   its_distance = before >> kPayloadBits;
    if (bits != 0) {
      ++found;
      if (!is_payload(bits & kPayloadMask) || distance >= cells_) return false;
      // An entry away from its home follows one that comes before it in that order.
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
  if (tokens == most() || place.distance > kMaxDistance || !can_move_on(place.cell))
    return Added::no_room;
  unsigned moved = place.distance << kPayloadBits | token.payload;
  for (std::uint64_t cell = place.cell; moved != 0; cell = next(cell)) {
    const unsigned there = read(cell);
    write(cell, moved);
    moved = there == 0 ? 0 : there + (1u << kPayloadBits);
  }
  return Added::is_new;
}

// A register's tokens lie in its own two cells or behind, in the order of registers, and never
// beyond an empty cell. Starting at an empty cell, the loop reads all tokens of a register, and
// those in its cells, before it writes the register.
void TokenTable::become_registers() const noexcept {
  const std::uint64_t registers = cells() / 2;
  std::uint64_t empty = 0;
  while (read(empty) != 0) ++empty;
  // The first register whose cells begin at or behind the empty cell.
  std::uint64_t index = (empty + 1) / 2 % registers, cell = 2 * index, done = 0;  // cells
  for (std::uint64_t i = 1; i <= registers; ++i) {
    Register made = 0;
    for (; done < cells(); ++done, cell = next(cell)) {
      const Token token = at(cell);
      const bool is_its = token.payload != 0 && token.register_index() == index;
      if (!is_its && done >= 2 * i) break;
      if (is_its) made = updated(made, token.update_value());
    }
    std::memcpy(body_ + index * sizeof made, &made, sizeof made);
    index = index + 1 == registers ? 0 : index + 1;
  }
}

}  // namespace streamfilter::exa_log_log
