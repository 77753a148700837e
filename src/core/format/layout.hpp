// The bytes of a filter. One contiguous, pointer-free block is the filter in memory:
//
//   0                Header            512 bytes: format, parameters; written once
//   512              slice 0           SliceState (64 bytes), then the kind's own bytes
//   512 + slice_bytes  slice 1 …       every slice is a filter of its own for its share of the keys
//
// Where it is stored or travels, the slices are the same, and ahead of them lie the parameters in
// 64 bytes (filter/packed_header.hpp): those and the slices are what `memory` counts.
//
// Slices are independent: work on one needs no other, so each can have its own lock.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/base/hash.hpp"
#include "core/base/math_policy.hpp"
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

constexpr std::uint64_t kStoredHeader = 64;  // bytes ahead of the slices where a filter is stored

static_assert(sizeof(Header) == 512);
static_assert(sizeof(SliceState) == 64);
static_assert(std::is_trivially_copyable_v<Header> && std::is_standard_layout_v<Header>);
static_assert(std::is_trivially_copyable_v<SliceState>);

inline std::uint64_t slices_bytes(const Parameters& p) noexcept { return p.slices * p.slice_bytes; }

// Bytes of the block in memory.
inline std::uint64_t block_bytes(const Parameters& p) noexcept {
  return sizeof(Header) + slices_bytes(p);
}

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

// One of the slices that lie one behind another.
inline ConstSlice slice_at(const Parameters& p, const void* slices, std::uint32_t index) noexcept {
  const auto* start = static_cast<const unsigned char*>(slices) + index * p.slice_bytes;
  return {reinterpret_cast<const SliceState*>(start), body_bytes(p)};
}

// Where the bits of a key lie when a filter is sliced (Koloniari et al. 2011 §3): in one probe
// or in several; each is a slice and the hash that the slice takes its positions from. A
// key was seen if all its probes say so, and a new key is put in all of them.
//
//   horizontal       one probe with all k bits; the slice is a hash of the key
//   vertical         k probes of one bit, spread over all slices
//   k1 x k2 (§3.3)   k1 probes of k2 bits, spread over all slices
//   diced (§3.3)     k probes of one bit, spread over a group of the slices; which group is a hash
//                    of the key. h-v 'S,S2': S groups of S2 slices. v-h 'S,S2': S2 groups of S
//                    slices, a group being what the key's hash takes of each of S columns.

struct KeyProbe {
  std::uint32_t slice;
  std::uint64_t hash;  // the slice takes its positions from this
};

// Number of probes of a key (k1). Two of them can lie in the same slice.
inline unsigned probes(const Parameters& parameters) noexcept {
  return parameters.k1 > 0 ? parameters.k1 : 1;
}

// Bits of a key in each of its probes (k2), out of k. Known before `probes` is.
inline std::uint64_t bits_per_probe(const Parameters& parameters, std::uint64_t k) noexcept {
  if (parameters.slicing != Slicing::horizontal) return 1;
  return parameters.k2 > 0 ? parameters.k2 : k;
}

// Number of consecutive slices over which the probes of one key spread.
inline std::uint32_t slices_of_group(const Parameters& parameters) noexcept {
  if (parameters.slicing == Slicing::diced)
    return parameters.dice == Dice::hv ? parameters.slices2
                                       : parameters.slices / parameters.slices2;
  return parameters.slicing == Slicing::vertical || parameters.k1 > 0 ? parameters.slices : 1;
}

// Number of such groups: each holds its share of the keys.
inline std::uint32_t groups_of(const Parameters& parameters) noexcept {
  return parameters.slices / slices_of_group(parameters);
}

// Probe `i` (0 to probes - 1) of a key.
inline KeyProbe probe_of(const Parameters& parameters, std::uint64_t hash, unsigned i) noexcept {
  if (parameters.k1 == 0) return {slice_of(parameters, hash), hash};
  const std::uint32_t size = slices_of_group(parameters);
  const std::uint64_t group = scale(hash, parameters.slices / size);
  const std::uint64_t own = mix64(hash + (i + 1) * kGoldenRatio);
  return {static_cast<std::uint32_t>(group * size + scale(own, size)), own};
}

// Numbers of keys, as the counters and bits of slices tell them.

// Number of keys in the fullest of `slices` slices, out of `keys` distinct keys: three standard
// deviations above the mean. Exact for one slice.
inline double keys_of_fullest(double keys, double slices) noexcept {
  const double mean = keys / slices;
  return slices > 1 ? std::min(keys, mean + 3 * std::sqrt(mean)) : mean;
}

// Linear counting (Whang et al. 1990): number of keys with k bits each that set this share of m
// bits; infinity when all are set.
inline double keys_of_share(double share, double m, double k) noexcept {
  return -m / k * std::log1p(-share);
}

// The same for `ones` of m bits. A full array counts as one bit short of full.
inline double counted_keys(double ones, double m, double k) noexcept {
  return keys_of_share(std::min(ones / m, 1 - 1 / m), m, k);
}

// `inserted_new` of two merged filters. A plain sum would count keys of both twice, so this scales
// it by the overlap that the cells show: keys counted in the parts, summed, and in the union.
inline std::uint64_t merged_new_by_cells(std::uint64_t a, std::uint64_t b, double parts,
                                         double both) noexcept {
  const double sum = to_real(a) + to_real(b);
  const double scaled = parts > 0 ? sum * both / parts : sum;
  return std::clamp(saturate<std::uint64_t>(std::round(scaled)), std::max(a, b), a + b);
}

// The same where entries stand for keys: `added` of the `used` entries of `from` were new.
inline std::uint64_t merged_new_by_entries(std::uint64_t into, std::uint64_t from,
                                           std::uint64_t added, std::uint64_t used) noexcept {
  const double share = used > 0 ? to_real(added) / to_real(used) : 0;
  const std::uint64_t gained = saturate<std::uint64_t>(std::round(to_real(from) * share));
  return std::max(into + std::min(gained, from), from);
}

}  // namespace streamfilter
