// Parameters in few bytes: what lies ahead of the slices wherever a filter is stored or travels. In
// memory it has a Header instead, which is made from these bytes at the door.
//
//   0    host's word
//   4    kPackedMagic
//   8    kFormatVersion, in one byte
//   9    kind
//   10   which common numbers follow, a bit each: packed_header.cpp
//   11   numbers of variable length (core/bits/rice_bits.hpp): which of the kind's options follow,
//        a bit each; memory; the common numbers; the options, in the order of the kind's table
//   …    zeros up to a multiple of 64
//
// What follows from these is derived when they are read. A real number is m 2^6 + 2 e + s if it is
// written with few digits: m 10^-e, negative if s is 1; otherwise 62, and 8 bytes.
//
// The numbers of all but long lists fit into 64 bytes, which `memory` counts; more come on top.
#pragma once

#include "core/bits/rice_bits.hpp"
#include "core/filter/filter.hpp"

namespace streamfilter {

constexpr std::uint32_t kPackedMagic = 0x504c4653;  // "SFLP"
constexpr std::size_t kHostWord = 4, kMostPacked = 4 * kStoredHeader;

struct PackedHeader {
  explicit PackedHeader(const Parameters& parameters) noexcept;

  unsigned char bytes[kMostPacked] = {};
  std::size_t size = 0;  // a multiple of 64
};

// Reads such a header, and how many of `length` bytes it takes. Safe on any bytes, except that the
// host's word is not looked at. Errors: corrupt, newer_version.
bool unpack_header(const void* bytes, std::size_t length, Parameters& parameters, std::size_t& size,
                   Problem& problem) noexcept;

// Of a whole filter: its packed header, behind the host's word, and its slices.
std::uint64_t checksum(const Header* header) noexcept;

// The numbers alone, for other forms.
void put_parameters(const Parameters& parameters, RiceWriter& out) noexcept;

// Reads filters one behind another, and derives the parameters of alike ones once.
class ParametersReader {
 public:
  // The numbers alone. False: they are no parameters; then parameters() is not to be used.
  bool take(const unsigned char*& at, const unsigned char* end, Kind kind) noexcept;

  // A packed header, like unpack_header.
  bool unpack(const void* bytes, std::size_t length, std::size_t& size, Problem& problem) noexcept;

  const Parameters& parameters() const noexcept { return parameters_; }

 private:
  bool derive(const unsigned char*& at, const unsigned char* end, Kind kind) noexcept;

  Parameters parameters_;
  unsigned char written_[kMostPacked];    // as in a packed header
  std::size_t numbers_ = 0, header_ = 0;  // bytes: of the numbers; of the header, if there was one
};

// Bytes of a stored filter.
inline std::uint64_t stored_bytes(const Parameters& parameters) noexcept {
  return PackedHeader(parameters).size + slices_bytes(parameters);
}

}  // namespace streamfilter
