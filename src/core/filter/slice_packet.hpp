// The state of one slice of a filter on its way to the same slice of another one: a head, the
// header of the filter, the bytes of the slice.
#pragma once

#include "core/filter/filter.hpp"

namespace streamfilter {

struct PacketHead {
  std::uint32_t magic;
  std::uint32_t slice;
  std::uint64_t sum;  // of all that follows, and the number of the slice
};
static_assert(sizeof(PacketHead) == 16);

// Bytes of a packet of one slice of such a filter.
std::uint64_t packet_size(const Parameters& parameters) noexcept;

// The head for slice `slice`, which lies behind its header.
PacketHead seal_packet(Header* header, std::uint32_t slice) noexcept;

// The header and, behind it, the slice, if these bytes are such a packet; they need 8-byte
// alignment. Safe on any bytes. nullptr: `problem` says why not. Errors: corrupt, newer_version.
const Header* open_packet(const void* bytes, std::size_t length, std::uint32_t& slice,
                          Problem& problem) noexcept;

}  // namespace streamfilter
