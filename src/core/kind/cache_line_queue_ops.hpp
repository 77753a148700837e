// Kind clq: finds a key's bucket, and works on it. Template parameters: `kWide`, the caller is
// FOR_WIDE_REGISTERS; `kAlone`, a line is one bucket.
#pragma once

#include "core/kind/cache_line_queue.hpp"

namespace streamfilter::clq {

#define ALWAYS_INLINE [[gnu::always_inline]] inline

// The bucket of a key, and its fingerprint. The two come from different hash functions.
template <bool kAlone = false>
struct KeyBucket {
  ALWAYS_INLINE KeyBucket(const Parameters& p, std::uint64_t bytes, std::uint64_t hash) noexcept
      : width(static_cast<unsigned>(p.integer(kBits))),
        length(static_cast<unsigned>(p.integer(kBucket))) {
    const unsigned __int128 at =
        static_cast<unsigned __int128>(mix64(hash + (kBucketHash + 1) * kGoldenRatio)) *
        (bytes / kLineBytes);
    line = static_cast<std::uint64_t>(at >> 64) * kLineBytes;
    start =
        kAlone ? 0
               : static_cast<unsigned>(scale(static_cast<std::uint64_t>(at), p.integer(kBuckets))) *
                     width * length;
    fingerprint = 1 + position(hash, kFingerprintHash, (std::uint64_t{1} << width) - 1);
  }

  unsigned width, length;
  unsigned start;      // bit of the line
  std::uint64_t line;  // byte of the body
  std::uint64_t fingerprint;
};

// Tick of an element; the present for an element without a time.
inline std::uint64_t tick_of(const Parameters& p, const SliceState& state,
                             const Element& element) noexcept {
  return is_finite(element.time) ? tick_at(element.time, p.integer(kTickLength)) : clock(state);
}

template <bool kWide>
ALWAYS_INLINE unsigned find(const Parameters& p, ConstSlice slice,
                            const Element& element) noexcept {
  const KeyBucket<> bucket(p, slice.bytes, element.hash);
  const BasicFingerprintQueue<kWide> queue(bucket.width, bucket.length, slice.body() + bucket.line,
                                           bucket.start);
  LineVector reach;
  if (!queue.find(bucket.fingerprint, reach)) return kNoRank;
  const unsigned at = queue.last_field(reach);
  if (!has_window(p)) return at;
  const std::uint64_t present = clock(*slice.state);
  const auto ages = ages_of(p, slice.body() + bucket.line);
  const unsigned age = ages.get(bucket.start / bucket.width + at);
  const std::uint64_t later = ages.since_stamp(present);
  const bool is_near = is_live(p, age, later) && are_near(tick_of(p, *slice.state, element),
                                                          present - later - age, window(p).near);
  return is_near ? at : kNoRank;
}

// Without a window.
template <bool kWide, bool kAlone>
ALWAYS_INLINE bool find_any(const Parameters& p, ConstSlice slice,
                            const Element& element) noexcept {
  const KeyBucket<kAlone> bucket(p, slice.bytes, element.hash);
  return BasicFingerprintQueue<kWide, kAlone>(bucket.width, bucket.length,
                                              slice.body() + bucket.line, bucket.start)
      .has(bucket.fingerprint);
}

// Without window and importance, policy lru or fifo.
template <bool kWide, bool kAlone>
ALWAYS_INLINE bool enter(const Parameters& p, Slice slice, const Element& element) noexcept {
  const KeyBucket<kAlone> bucket(p, slice.bytes, element.hash);
  unsigned char* line = slice.body() + bucket.line;
  BasicFingerprintQueue<kWide, kAlone> queue(bucket.width, bucket.length, line, bucket.start);
  LineVector reach;
  const bool seen = queue.find(bucket.fingerprint, reach);
  if (p.integer(kPolicy) == fifo && seen) return true;  // in this order the branch is predictable
  used(*slice.state) += unsigned{!seen} & unsigned{!queue.is_full()};
  queue.push(bucket.fingerprint, reach);
  queue.store(line);
  return seen;
}

// Without window and importance: if the key is there, does what `insert` does and returns the key's
// rank. Otherwise changes nothing and returns kNoRank.
template <bool kWide, bool kAlone>
ALWAYS_INLINE unsigned promote_line(const Parameters& p, Slice slice,
                                    const Element& element) noexcept {
  const KeyBucket<kAlone> bucket(p, slice.bytes, element.hash);
  unsigned char* line = slice.body() + bucket.line;
  BasicFingerprintQueue<kWide, kAlone> queue(bucket.width, bucket.length, line, bucket.start);
  LineVector reach;
  if (!queue.find(bucket.fingerprint, reach)) return kNoRank;
  const unsigned at = queue.last_field(reach);
  if (at == 0 || p.integer(kPolicy) == fifo) return at;
  queue.push(bucket.fingerprint, reach);
  queue.store(line);
  return at;
}

template <bool kWide>
ALWAYS_INLINE bool enter_specially(const Parameters& p, Slice slice,
                                   const Element& element) noexcept {
  SliceState& state = *slice.state;
  const KeyBucket<> bucket(p, slice.bytes, element.hash);
  unsigned char* line = slice.body() + bucket.line;
  std::uint64_t late = 0;
  if (has_window(p)) {
    const std::uint64_t then = tick_of(p, state, element), former = clock(state);
    clock(state) = std::max(former, then);
    late = clock(state) - then;
    bring_up(p, state, former, line);
  }
  BasicFingerprintQueue<kWide> queue(bucket.width, bucket.length, line, bucket.start);
  LineVector reach;
  const bool is_there = queue.find(bucket.fingerprint, reach);
  const unsigned last = queue.last_field(reach), first = bucket.start / bucket.width;
  bool seen = is_there;
  unsigned age = 0;
  if (has_window(p)) {
    const WindowTicks window = clq::window(p);
    age = is_there ? ages_of(p, line).get(first + last) : kAges;
    seen = is_there && late <= window.late && are_near(late, age, window.near);
    if (!is_there && late >= p.integer(kTicks)) return false;
    if (!seen && late < age) age = static_cast<unsigned>(late);
  }
  if (p.integer(kPolicy) == fifo && seen) return true;
  const bool is_full = queue.is_full();
  unsigned to = is_there && !has_importance(p) ? 0 : entrance(p, element.importance);
  if (to > last) return seen;
  if (to > 0 && !is_there && !is_full) to = std::min(to, queue.size());
  used(state) += !is_there && !is_full;
  queue.push_to(to, bucket.fingerprint, reach);
  queue.store(line);
  if (has_window(p)) ages_of(p, line).push(first + to, first + last, age);
  return seen;
}

#undef ALWAYS_INLINE

}  // namespace streamfilter::clq
