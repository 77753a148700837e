// Shared by the files of kind clq: its parameters, the place of a key, and its age.
#pragma once

#include "core/bits/line_tail.hpp"
#include "core/format/importance_levels.hpp"
#include "core/kind/timing_options.hpp"
#include "core/model/clq_model.hpp"

namespace streamfilter::clq {

enum Word : unsigned {
  kBits,
  kBucket,
  kPolicy,
  kBuckets,                // derived: of one line; 0 if a key has two
  kWindow,                 // and its unit
  kTicks = 6,              // derived: of the window; 0 without one
  kTickLength,             // in microseconds
  kRange,                  // two numbers in the next words
  kLevels = kRange + 3,    // up to 14 numbers in the next words
  kParts = kLevels + 15,   // derived: number of importance levels minus 1; 0 without importance
  kLateness,               // and its unit
  kLines = kLateness + 2,  // lines that a key may be in; 0: 1
};

enum Policy : std::uint64_t { lru, fifo, second };

constexpr unsigned kPartsOfRange = 7;
constexpr importance::Words kImportanceWords = {kRange, kLevels};

auto& used(auto& state) noexcept { return state.own[0]; }  // used fields

// With a window: tick of the latest element.
auto& clock(auto& state) noexcept { return state.own[1]; }

inline bool has_window(const Parameters& p) noexcept { return p.integer(kTicks) != 0; }
inline bool has_importance(const Parameters& p) noexcept { return p.integer(kParts) != 0; }

// True if a line is a single bucket and has no ages or counters.
inline bool is_alone(const Parameters& p) noexcept { return p.integer(kBuckets) == 1; }

// True if a key may be in either of two lines.
inline bool has_choice(const Parameters& p) noexcept { return p.integer(kLines) == 2; }

inline clq_model::LineShape shape_of(const Parameters& p) noexcept {
  return {static_cast<unsigned>(p.integer(kBits)), static_cast<unsigned>(p.integer(kBucket)),
          has_window(p), has_choice(p) ? 2u : 1u};
}

// True if a fingerprint's rank tells how many keys came since. An option can order a bucket
// otherwise; with two lines, that number does not depend on chance alone.
inline unsigned ranks(const Parameters& p) noexcept {
  return p.integer(kPolicy) == lru && !has_importance(p) ? static_cast<unsigned>(p.integer(kBucket))
                                                         : 0;
}

// Calls visit(line, start) for every bucket, with a byte of the body and a bit of the line.
template <typename Visit>
void for_each_bucket(const Parameters& p, std::uint64_t bytes, Visit visit) noexcept {
  const clq_model::LineShape shape = shape_of(p);
  for (std::uint64_t line = 0; line < bytes; line += kLineBytes)
    for (unsigned i = 0; i < shape.buckets(); ++i) visit(line, i * shape.bits * shape.length);
}

constexpr unsigned kBucketHash = 0, kFingerprintHash = 1;

// ---- ages, with a window

template <typename Byte>
LineAges<Byte> ages_of(const Parameters& p, Byte* line) noexcept {
  return {line, static_cast<unsigned>(p.integer(kBuckets) * p.integer(kBucket))};
}

// True if a key that had this age at the line's stamp is still in the window `later` ticks after
// it.
inline bool is_live(const Parameters& p, unsigned age, std::uint64_t later) noexcept {
  return later < p.integer(kTicks) && age + later < p.integer(kTicks);
}

// Brings the ages of a line up to the slice's clock, and removes keys that have left the window.
// `former` is the clock before it was set: a stamp can only name ticks up to 2^32 before it.
void bring_up(const Parameters& p, SliceState& state, std::uint64_t former,
              unsigned char* line) noexcept;

// ---- functions of the kind (filter_kind.hpp) that have files of their own

extern const OptionSpec kOptions[8];
bool derive(Definition& definition, Problem& problem) noexcept;

void prefetch(const Parameters& p, ConstSlice slice, const Element& element,
              Prefetches& prefetches) noexcept;
bool test(const Parameters& p, ConstSlice slice, const Element& element) noexcept;
bool insert(const Parameters& p, Slice slice, const Element& element) noexcept;
unsigned find_rank(const Parameters& p, ConstSlice slice, const Element& element) noexcept;
bool promote(const Parameters& p, Slice slice, const Element& element, unsigned& rank) noexcept;
WindowTicks window(const Parameters& p) noexcept;
bool erase(const Parameters& p, Slice slice, const Element& element) noexcept;

// The field of a bucket that an element enters.
unsigned entrance(const Parameters& p, double importance) noexcept;

void merge(const Parameters& p, Slice into, ConstSlice from) noexcept;

// For a resize: the places of a slice are its buckets.
std::uint64_t places(const Parameters& p) noexcept;
void spread(const Parameters& old, ConstSlice from, const Parameters& p, Slice into,
            std::uint64_t layer) noexcept;

// True if the slice's counters of copies are possible ones.
bool has_valid_copies(const Parameters& p, const SliceState& state) noexcept;
bool may_join_places(const Parameters& p, ConstSlice slice) noexcept;

}  // namespace streamfilter::clq
