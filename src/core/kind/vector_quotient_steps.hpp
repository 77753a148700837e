// Kind vqf: what one key does to its two lines. Template parameters: the shape of a line, and
// `kBmi2`, the caller is FOR_BMI2.
#pragma once

#include "core/kind/vector_quotient.hpp"

namespace streamfilter::vqf {

#define ALWAYS_INLINE [[gnu::always_inline]] inline

template <typename Shape>
ALWAYS_INLINE Shape shape_as(const Parameters& p) noexcept {
  if constexpr (std::is_same_v<Shape, AnyShape>) return shape_of(p);
  return Shape{};
}

// The lines of a key, with what `look` says of both.
template <typename Shape, bool kBmi2, typename State, typename Byte>
struct KeyLines {
  using Line = QuotientLine<Shape, kBmi2, Byte>;
  using Spot = typename Line::Spot;

  ALWAYS_INLINE KeyLines(const Parameters& p, BasicSlice<State, Byte> slice,
                         const Element& element) noexcept
      : shape(shape_as<Shape>(p)),
        lines(p, slice),
        place(place_of(p, shape.buckets, shape.bits, lines.count, element.hash)) {
    // Both at once, where the processor does not look so far ahead.
    for (const std::uint64_t line : place.line) __builtin_prefetch(lines.at(line));
  }

  ALWAYS_INLINE void look() noexcept {
    spot[0] = line(0).look(place.bucket, place.remainder);
    spot[1] = line(1).look(place.bucket, place.remainder);
  }

  ALWAYS_INLINE Line line(std::uint64_t i) const noexcept {
    return {shape, lines.at(choose(i, place.line[1], place.line[0]))};
  }
  ALWAYS_INLINE bool has_key() const noexcept { return (spot[0].hit | spot[1].hit) != 0; }

  // Number of the line that has the key, where one has. Both can where a filter that has shrunk
  // twice was merged: then the newer.
  ALWAYS_INLINE std::uint64_t which() const noexcept {
    if (shape.ages > 0 && (spot[0].hit & spot[1].hit) != 0) [[unlikely]]
      return epoch(1, spot[1].slot) > epoch(0, spot[0].slot);
    return spot[0].hit ^ 1;
  }
  ALWAYS_INLINE unsigned slot() const noexcept {
    return choose(which(), spot[1].slot, spot[0].slot);
  }

  // An epoch from its code.
  ALWAYS_INLINE std::uint64_t epoch(std::uint64_t i, unsigned slot) const noexcept {
    const std::uint64_t base = lines.stamp(choose(i, place.line[1], place.line[0]));
    return base + ((line(i).code(slot) - base) & low_bits(shape.ages));
  }

  // Puts the key, which neither line has, into the emptier one. False: both are full.
  ALWAYS_INLINE bool put(std::uint64_t code) noexcept {
    const std::uint64_t other = spot[1].count < spot[0].count;
    const Spot at = {choose(other, spot[1].start, spot[0].start),
                     choose(other, spot[1].count, spot[0].count),
                     0,
                     0,
                     choose(other, spot[1].has_run, spot[0].has_run),
                     choose(other, spot[1].ends, spot[0].ends)};
    if (at.count == shape.slots) [[unlikely]]
      return false;
    line(other).put(at, place.bucket, place.remainder, code);
    return true;
  }

  [[no_unique_address]] Shape shape;
  Lines<State, Byte> lines;
  Place place;
  Spot spot[2];
};

// Removes what is older than K ticks from the group of a line.
void sweep(const Parameters& p, Slice slice, std::uint64_t line) noexcept;

ALWAYS_INLINE void sweep_if_due(const Parameters& p, Slice slice,
                                const Lines<SliceState, unsigned char>& lines,
                                std::uint64_t line) noexcept {
  if ((clock(*slice.state) - lines.stamp(line)) >> p.integer(kAges) != 0) [[unlikely]]
    sweep(p, slice, line);
}

template <typename Shape, bool kBmi2>
ALWAYS_INLINE bool test_lines(const Parameters& p, ConstSlice slice,
                              const Element& element) noexcept {
  KeyLines<Shape, kBmi2, const SliceState, const unsigned char> key(p, slice, element);
  key.look();
  if (!has_window(p) || !key.has_key()) return key.has_key();
  return are_near(tick_of(p, *slice.state, element), key.epoch(key.which(), key.slot()),
                  window_ticks(p));
}

// Where both lines of a key are full, puts it in place of another entry: one that the key decides;
// with a window the oldest, unless that is younger than the key, which then is lost itself.
void replace_any(const Parameters& p, Slice slice, const Place& place) noexcept;
void replace_oldest(const Parameters& p, Slice slice, const Place& place,
                    std::uint64_t then) noexcept;

// Without a window.
template <typename Shape, bool kBmi2>
ALWAYS_INLINE bool insert_known(const Parameters& p, Slice slice, const Element& element) noexcept {
  KeyLines<Shape, kBmi2, SliceState, unsigned char> key(p, slice, element);
  key.look();
  if (key.has_key()) return true;
  if (key.put(0)) [[likely]]
    ++used(*slice.state);
  else
    replace_any(p, slice, Place(key.place));
  return false;
}

// Remembers that an event of the key was at tick `then`. Both groups are swept.
template <typename Key>
ALWAYS_INLINE void remember(const Parameters& p, Slice slice, Key& key,
                            std::uint64_t then) noexcept {
  if (clock(*slice.state) - then >= kept_ticks(p)) return;
  if (key.has_key()) {
    // One entry a key is enough: lateness is no longer than the window, so any event in time that
    // an older one would match, a newer one matches, too.
    if (key.epoch(key.which(), key.slot()) < then) key.line(key.which()).set_code(key.slot(), then);
    return;
  }
  if (key.put(then)) [[likely]]
    ++used(*slice.state);
  else
    replace_oldest(p, slice, Place(key.place), then);
}

// `always`: even if it looks like a repeat by now.
template <typename Shape, bool kBmi2>
ALWAYS_INLINE bool insert_in_window(const Parameters& p, Slice slice, const Element& element,
                                    bool always) noexcept {
  SliceState& state = *slice.state;
  KeyLines<Shape, kBmi2, SliceState, unsigned char> key(p, slice, element);
  const std::uint64_t then = tick_of(p, state, element);
  clock(state) = std::max(clock(state), then);
  for (const std::uint64_t line : key.place.line) sweep_if_due(p, slice, key.lines, line);
  key.look();
  if (key.has_key() && !always && clock(state) - then <= late_ticks(p)) {
    const std::uint64_t epoch = key.epoch(key.which(), key.slot());
    if (are_near(then, epoch, window_ticks(p))) {
      if (is_extended(p) && epoch < then) key.line(key.which()).set_code(key.slot(), then);
      return true;
    }
  }
  remember(p, slice, key, then);
  if (counts_rows(p)) count_row(p, state);
  return false;
}

#undef ALWAYS_INLINE

}  // namespace streamfilter::vqf
