// A filter that is mostly as it was when it was empty, of any kind without a compact form of its
// own (compact_form.hpp), in bytes that follow what it holds: the compact form of its value. It is
// decoded where it comes in; nothing works on it as it is.
//
//   0    host's word
//   4    kCompactMagic
//   8    kCompactVersion
//   9    kind
//   10   bits of a unit, 1 or 8
//   11   the parameters, as in a packed header; a number of variable length: how many units
//   …    the units of the slices that differ from 0, or from a fresh state of the random numbers:
//        how many equal ones lie between, by a Golomb-Rice code; with 8 bits, their difference; up
//        to a whole byte, 0 bits
//   …    checksum of all behind the host's word, in 4 bytes
#pragma once

#include "core/filter/compact_form.hpp"

namespace streamfilter {

// How a filter is written.
struct SparsePlan {
  unsigned unit;        // bits
  std::uint64_t count;  // of units
  std::size_t room;     // bytes that suffice
};

// False: the form has more than `most` bytes, or there is none. True: it may still have more.
bool plan_sparse(const Header* header, std::size_t most, SparsePlan& plan) noexcept;

// Returns the number of bytes.
std::size_t write_sparse(const Header* header, const SparsePlan& plan,
                         unsigned char* bytes) noexcept;

// Reads any bytes; can be reused.
class SparseReader {
 public:
  // Takes the bytes behind the host's word, without a copy. Errors: corrupt, newer_version.
  bool open(const void* body, std::size_t length, Problem& problem) noexcept;

  const Parameters& parameters() const noexcept { return parameters_.parameters(); }

  // Makes the filter in block_bytes, 8-byte aligned. Its counters are what they were
  // when it was written; for a stranger's bytes, check() follows. Errors: corrupt.
  bool read(Header* filter, Problem& problem) const noexcept;

 private:
  bool add_units(unsigned char* bytes, Problem& problem) const noexcept;

  ParametersReader parameters_;
  const void* body_ = nullptr;
  RiceBits bits_{};
  unsigned unit_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace streamfilter
