// Kind clq with two lines per key. A new key enters the line that has had fewer entries so far, so
// that lines fill evenly. Template parameter `kWide`: the caller is FOR_WIDE_REGISTERS.
#pragma once

#include "core/kind/cache_line_queue.hpp"

namespace streamfilter::clq {

#define ALWAYS_INLINE [[gnu::always_inline]] inline

constexpr unsigned kSecondHash = 2;

// The two lines of a key, and the key's fingerprint.
struct KeyLines {
  ALWAYS_INLINE KeyLines(const Parameters& p, std::uint64_t bytes, std::uint64_t hash) noexcept
      : width(static_cast<unsigned>(p.integer(kBits))),
        length(static_cast<unsigned>(p.integer(kBucket))),
        first(position(hash, kBucketHash, bytes / kLineBytes) * kLineBytes),
        second(position(hash, kSecondHash, bytes / kLineBytes) * kLineBytes),
        fingerprint(1 + position(hash, kFingerprintHash, (std::uint64_t{1} << width) - 1)) {}

  unsigned width, length;
  std::uint64_t first, second;  // bytes of the body
  std::uint64_t fingerprint;
};

// The line that has a key, or that the key would enter.
template <bool kWide, typename Byte>
struct ChosenLine {
  using Queue = BasicFingerprintQueue<kWide, true, true>;

  // Reads both lines at once, because the processor cannot predict which one has the key.
  ALWAYS_INLINE ChosenLine(const KeyLines& key, Byte* body) noexcept
      : queue(key.width, key.length, body + key.first, 0) {
    const Queue other(key.width, key.length, body + key.second, 0);
    LineVector other_reach;
    const unsigned in_first = queue.find(key.fingerprint, reach),
                   in_second = other.find(key.fingerprint, other_reach),
                   behind = is_behind(body + key.second, body + key.first);
    const bool is_other = (~in_first & (in_second | behind)) != 0;
    queue.replace(is_other, other, reach, other_reach);
    line = body + (is_other ? key.second : key.first);
    has_key = (in_first | in_second) != 0;
  }

  Queue queue;
  LineVector reach;  // as in `queue.find`
  Byte* line;
  bool has_key;
};

template <bool kWide>
ALWAYS_INLINE unsigned find_in_either(const Parameters& p, ConstSlice slice,
                                      const Element& element) noexcept {
  const KeyLines key(p, slice.bytes, element.hash);
  const ChosenLine<kWide, const unsigned char> chosen(key, slice.body());
  return chosen.has_key ? chosen.queue.last_field(chosen.reach) : kNoRank;
}

template <bool kWide>
ALWAYS_INLINE bool is_in_either(const Parameters& p, ConstSlice slice,
                                const Element& element) noexcept {
  using Queue = BasicFingerprintQueue<kWide, true, true>;
  const KeyLines key(p, slice.bytes, element.hash);
  const unsigned in_first =
                     Queue(key.width, key.length, slice.body() + key.first, 0).has(key.fingerprint),
                 in_second = Queue(key.width, key.length, slice.body() + key.second, 0)
                                 .has(key.fingerprint);
  return (in_first | in_second) != 0;
}

template <bool kWide>
ALWAYS_INLINE bool enter_either(const Parameters& p, Slice slice, const Element& element) noexcept {
  const KeyLines key(p, slice.bytes, element.hash);
  ChosenLine<kWide, unsigned char> chosen(key, slice.body());
  const bool seen = chosen.has_key;
  used(*slice.state) += unsigned{!seen} & unsigned{!chosen.queue.is_full()};
  chosen.queue.push(key.fingerprint, chosen.reach);
  chosen.queue.count(!seen, kEntriesStart);
  chosen.queue.store(chosen.line);
  return seen;
}

// If the key is there, does what `enter_either` does and returns the key's rank. Otherwise changes
// nothing and returns kNoRank.
template <bool kWide>
ALWAYS_INLINE unsigned promote_in_either(const Parameters& p, Slice slice,
                                         const Element& element) noexcept {
  const KeyLines key(p, slice.bytes, element.hash);
  ChosenLine<kWide, unsigned char> chosen(key, slice.body());
  if (!chosen.has_key) return kNoRank;
  const unsigned at = chosen.queue.last_field(chosen.reach);
  chosen.queue.push(key.fingerprint, chosen.reach);
  chosen.queue.store(chosen.line);
  return at;
}

#undef ALWAYS_INLINE

}  // namespace streamfilter::clq
