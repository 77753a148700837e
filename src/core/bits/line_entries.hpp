// Number of fingerprints that have entered a 64-byte line, modulo 32, in its last 5 bits. It tells
// which of two lines has taken fewer, if their numbers differ by less than 16.
#pragma once

#include "core/bits/fingerprint_queue.hpp"

namespace streamfilter {

constexpr unsigned kEntriesBits = 5;
constexpr unsigned kEntriesStart = kLineBits - kEntriesBits;

inline unsigned entries(const unsigned char* line) noexcept {
  return line[kLineBytes - 1] >> kEntriesStart % 8;
}

// `count` may be negative.
inline void add_entries(unsigned char* line, unsigned count) noexcept {
  line[kLineBytes - 1] =
      static_cast<unsigned char>(line[kLineBytes - 1] + (count << kEntriesStart % 8));
}

// Has the line taken fewer than the other one?
inline bool is_behind(const unsigned char* line, const unsigned char* other) noexcept {
  constexpr unsigned kMask = (1u << kEntriesBits) - 1;
  return ((entries(other) - entries(line) - 1) & kMask) < kMask / 2;
}

}  // namespace streamfilter
