// The bytes of a filter. One contiguous, pointer-free block is the filter in shared memory, in a
// value, in an aggregate and in an image:
//
//   0                Header            512 bytes: format, parameters; written once
//   512              slice 0           SliceState (64 bytes), then the kind's own bytes
//   512 + slice_bytes  slice 1 …       every slice is a filter of its own for its share of the keys
//   …                zero bytes up to `memory`
//
// Slices are independent: work on one needs no other, so each can have its own lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/base/hash.hpp"
#include "core/format/parameters.hpp"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the format of a filter is little-endian; big-endian machines are not supported"
#endif
#if __SIZEOF_POINTER__ != 8
#error "a filter is addressed by 64 bits; machines of 32 bits are not supported"
#endif

namespace streamfilter {

constexpr std::uint32_t kMagic = 0x544c4653;  // "SFLT"
constexpr std::uint16_t kFormatVersion = 1;

struct Header {
  std::uint32_t host;  // for the host (PostgreSQL keeps a value's length here); never read
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t reserved0;
  std::uint32_t reserved1;
  std::uint64_t reserved[8];  // always zero
  Parameters parameters;
};

// State of every slice besides the kind's own bytes.
struct SliceState {
  std::uint64_t random;        // of the generator
  std::uint64_t insertions;    // elements inserted
  std::uint64_t inserted_new;  // of these, elements reported as new
  std::uint64_t own[5];        // the kind's own counters
};

// Counting stops here: repeatedly merging a filter with itself must not wrap around.
constexpr std::uint64_t kMaxInsertions = std::uint64_t{1} << 62;

// Counts an inserted element.
inline void count_insertion(SliceState& state, bool seen) noexcept {
  const bool counts = state.insertions < kMaxInsertions;
  state.insertions += counts;
  state.inserted_new += counts && !seen;
}

static_assert(sizeof(Header) == 512);
static_assert(sizeof(SliceState) == 64);
static_assert(std::is_trivially_copyable_v<Header> && std::is_standard_layout_v<Header>);
static_assert(std::is_trivially_copyable_v<SliceState>);

// Of a slice: what a kind has for itself.
inline std::uint64_t body_bytes(const Parameters& p) noexcept {
  return p.slice_bytes - sizeof(SliceState);
}

// One slice of a filter, in two registers. `Byte` is const-qualified for reading.
template <typename State, typename Byte>
struct BasicSlice {
  State* state;
  std::uint64_t bytes;  // of the body, which follows the state

  Byte* body() const noexcept { return reinterpret_cast<Byte*>(state + 1); }
};
using Slice = BasicSlice<SliceState, unsigned char>;
using ConstSlice = BasicSlice<const SliceState, const unsigned char>;

inline ConstSlice as_const(Slice slice) noexcept { return {slice.state, slice.bytes}; }

// The slice of a key.
inline std::uint32_t slice_of(const Parameters& parameters, std::uint64_t hash) noexcept {
  if (parameters.key_shift > 0)
    return static_cast<std::uint32_t>((hash >> parameters.key_shift) % parameters.slices);
  return static_cast<std::uint32_t>(scale(hash, parameters.slices));
}

inline Slice slice_at(Header* header, std::uint32_t index) noexcept {
  unsigned char* start = reinterpret_cast<unsigned char*>(header) + sizeof(Header) +
                         index * header->parameters.slice_bytes;
  return {reinterpret_cast<SliceState*>(start), body_bytes(header->parameters)};
}

inline ConstSlice slice_at(const Header* header, std::uint32_t index) noexcept {
  return as_const(slice_at(const_cast<Header*>(header), index));
}

}  // namespace streamfilter
