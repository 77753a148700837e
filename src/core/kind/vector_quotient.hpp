// Shared by the files of kind vqf: its parameters, the lines of a key, and the age of an entry.
#pragma once

#include "core/kind/timing_options.hpp"
#include "core/model/vector_quotient_model.hpp"

namespace streamfilter::vqf {

enum Word : unsigned {
  kBits,
  kBuckets,
  kGrowth,
  kWindow,                  // and its unit
  kLateness = kWindow + 2,  // and its unit
  kAges = kLateness + 2,    // 0 without a window
  kExtend,
  kTicks,       // derived: of the window, and of lateness from bit 32 on; 0 without a window
  kTickLength,  // derived: in microseconds, or accepted rows of one slice
  kOrigin,      // up to kMaxLevels numbers in the next words
};

constexpr unsigned kMaxLevels = 4;

auto& used(auto& state) noexcept { return state.own[0]; }     // slots in use
auto& clock(auto& state) noexcept { return state.own[1]; }    // with a window: the latest tick
auto& evicted(auto& state) noexcept { return state.own[2]; }  // entries lost while they were needed
auto& rows(auto& state) noexcept { return state.own[3]; }     // accepted, if a window counts rows

inline bool has_window(const Parameters& p) noexcept { return p.integer(kTicks) != 0; }
inline bool counts_rows(const Parameters& p) noexcept { return p.integer(kWindow + 1) != 0; }
inline bool is_extended(const Parameters& p) noexcept { return p.integer(kExtend) != 0; }

inline AnyShape shape_of(const Parameters& p) noexcept {
  const unsigned bits = static_cast<unsigned>(p.integer(kBits)),
                 buckets = static_cast<unsigned>(p.integer(kBuckets)),
                 ages = static_cast<unsigned>(p.integer(kAges));
  return {vector_quotient_model::slots_of(bits, buckets, ages), buckets, bits, ages};
}

// ---- the lines of a slice -----------------------------------------------------------------------

constexpr std::uint64_t kGroupLines = 64;                 // that share a stamp of 8 bytes
constexpr std::uint64_t kStampedLines = 8 * kGroupLines;  // whose stamps fill a line

// A window has stamps ahead of the lines.
inline std::uint64_t lines_of(const Parameters& p, std::uint64_t bytes) noexcept {
  const std::uint64_t all = bytes / kLineBytes;
  return has_window(p) ? all - (all + kStampedLines) / (kStampedLines + 1) : all;
}
template <typename State, typename Byte>
struct Lines {
  Lines(const Parameters& p, BasicSlice<State, Byte> slice) noexcept
      : count(lines_of(p, slice.bytes)),
        stamps(slice.body()),
        lines(slice.body() +
              (has_window(p) ? (count + kStampedLines - 1) / kStampedLines * kLineBytes : 0)) {}

  Byte* at(std::uint64_t line) const noexcept { return lines + line * kLineBytes; }
  Byte* stamp_at(std::uint64_t line) const noexcept { return stamps + line / kGroupLines * 8; }
  std::uint64_t stamp(std::uint64_t line) const noexcept {
    std::uint64_t stamp;
    std::memcpy(&stamp, stamp_at(line), sizeof stamp);
    return stamp;
  }

  std::uint64_t count;
  Byte *stamps, *lines;
};

// A tag, and the two lines that may have it.
struct Place {
  unsigned bucket;
  std::uint64_t remainder;
  std::uint64_t line[2];
};

inline std::uint64_t tag_of(const Parameters& p, unsigned bucket,
                            std::uint64_t remainder) noexcept {
  return std::uint64_t{bucket} << p.integer(kBits) | remainder;
}

// One of a key's two lines among n is this function of the other and the tag. So an entry says all
// that a key says, and entries can be moved without their keys.
inline std::uint64_t partner(std::uint64_t line, std::uint64_t tag, std::uint64_t n) noexcept {
  const std::uint64_t sum = scale(mix64(tag * kGoldenRatio + 1), n);
  return sum - line + (sum < line ? n : 0);
}

// ---- another size -------------------------------------------------------------------------------
//
// Option origin lists the numbers of lines that a slice has had, as far as lines follow from them:
// the first one, and any that was smaller than all before. A line among n of these comes to be,
// among more or fewer, the line that `moved` says: where one line becomes several, the tag says
// which. From a number to a greater one no two lines meet, and `moved_back` is exact.

inline unsigned levels(const Parameters& p) noexcept {
  return static_cast<unsigned>(p.integer(kOrigin));
}
inline std::uint64_t level(const Parameters& p, unsigned i) noexcept {
  return static_cast<std::uint64_t>(p.real(kOrigin + 1 + i));
}
// The least number of lines that a slice has had.
inline std::uint64_t least_lines(const Parameters& p) noexcept {
  return levels(p) > 0 ? level(p, levels(p) - 1) : lines_of(p, body_bytes(p));
}

std::uint64_t moved(std::uint64_t line, std::uint64_t tag, unsigned level, std::uint64_t from,
                    std::uint64_t to) noexcept;
std::uint64_t moved_back(std::uint64_t line, std::uint64_t tag, unsigned level, std::uint64_t from,
                         std::uint64_t to) noexcept;
// From the first of the sizes to n lines.
std::uint64_t moved_on(const Parameters& p, std::uint64_t line, std::uint64_t tag,
                       std::uint64_t n) noexcept;

[[gnu::always_inline]] inline Place place_of(const Parameters& p, unsigned buckets, unsigned bits,
                                             std::uint64_t n, std::uint64_t hash) noexcept {
  const std::uint64_t mixed = mix64(hash + 2 * kGoldenRatio),
                      lines = levels(p) == 0 ? n : level(p, 0);
  Place place = {static_cast<unsigned>(scale(mixed, buckets)), mixed & low_bits(bits), {}};
  const std::uint64_t tag = std::uint64_t{place.bucket} << bits | place.remainder;
  place.line[0] = scale(mixed * kGoldenRatio, lines);
  place.line[1] = partner(place.line[0], tag, lines);
  if (levels(p) > 0) [[unlikely]]
    for (std::uint64_t& line : place.line) line = moved_on(p, line, tag, n);
  return place;
}

// The place of an entry. Once a slice has shrunk, its other line is not known: both are this one.
Place place_of_entry(const Parameters& p, std::uint64_t n, std::uint64_t line, unsigned bucket,
                     std::uint64_t remainder) noexcept;

// ---- time ---------------------------------------------------------------------------------------
//
// An event at tick j is a repeat if an entry of its key has an epoch, the tick of its event, at
// most w ticks from j. Late is what comes more than l ticks behind the clock: it always passes.
// Entries are kept for K = w + l + 1 ticks, of 2^A codes. Groups of lines have stamps: every epoch
// of a group is in [stamp, stamp + 2^A), so what a code means does not depend on the clock. When an
// event's clock leaves this range, the group is swept: entries older than K ticks go, and the stamp
// follows. That happens when a key of the group comes, so no jump of time makes a pause.

inline std::uint64_t window_ticks(const Parameters& p) noexcept {
  return p.integer(kTicks) & low_bits(32);
}
inline std::uint64_t late_ticks(const Parameters& p) noexcept { return p.integer(kTicks) >> 32; }
inline std::uint64_t kept_ticks(const Parameters& p) noexcept {
  return window_ticks(p) + late_ticks(p) + 1;
}

// The tick of an element; the present for an element without a time.
inline std::uint64_t tick_of(const Parameters& p, const SliceState& state,
                             const Element& element) noexcept {
  return counts_rows(p) || !is_finite(element.time) ? clock(state)
                                                    : tick_at(element.time, p.integer(kTickLength));
}

inline void count_evicted(SliceState& state, std::uint64_t lost) noexcept {
  evicted(state) = std::min(evicted(state) + lost, kMaxInsertions);
}

inline void count_row(const Parameters& p, SliceState& state) noexcept {
  rows(state) += rows(state) < kMaxInsertions;
  clock(state) = rows(state) / p.integer(kTickLength);
}

// ---- functions of the kind (filter_kind.hpp) that have files of their own -----------------------

extern const OptionSpec kOptions[8];
bool derive(Definition& definition, Problem& problem) noexcept;

void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept;
bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept;
bool insert(const Parameters& p, Slice slice, const Element& element) noexcept;
void insert_unconditionally(const Parameters& p, Slice slice, const Element& element) noexcept;
bool renews(const Parameters& p, ConstSlice slice, const Element& element) noexcept;
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept;
void merge(const Parameters& p, Slice into, ConstSlice from) noexcept;
void move(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
          std::uint32_t index) noexcept;
bool inherit(const Parameters& from, Parameters& p) noexcept;

}  // namespace streamfilter::vqf
