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
#pragma once

#include "core/format/layout.hpp"

namespace streamfilter {

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

}  // namespace streamfilter
