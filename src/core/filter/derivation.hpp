// From a definition of a known kind to complete parameters, and back.
#pragma once

#include "core/kind/kind_registry.hpp"

namespace streamfilter {

// Derives memory and slices, and the rest by the kind's formulas. Errors: too_small, too_large,
// conflict (a promise that cannot be kept), out_of_range.
bool derive_parameters(Definition& definition, Problem& problem) noexcept;

// The least memory (to 1/64) in which the definition keeps fpr for its keys; 0: none.
std::uint64_t memory_for_keys(const Definition& definition) noexcept;

// The most keys (to 1/1024) for which it keeps fpr in its memory; 0: none.
std::uint64_t keys_for_memory(Definition definition) noexcept;

// The definition with every given parameter; completing it yields the same parameters. Leaves out
// derived numbers, so that completing derives them anew. Safe on any bytes.
Definition definition_of(const Parameters& parameters) noexcept;

// How many elements ago a key may have come to be missed with a rate of at most `fnr`; infinity: no
// limit, NaN: the kind has no model.
double window_keys(const Parameters& parameters, double fnr) noexcept;

// Which slicings go with which kinds and options.

// Is the slicing one that the kind and the other options go with? k1 and k2 say what k is.
// Errors: conflict, unsupported, out_of_range.
bool check_slicing(Definition& definition, const FilterOps& ops, Problem& problem) noexcept;

// k1 and k2 of parameters whose k is known: of a vertical or diced filter, every bit has a probe of
// its own.
void derive_probes(Parameters& parameters) noexcept;

// The options of a kind that count for all slices become those of `slices` of them: each slice gets
// the same from these as from those of all. What follows from the rest is 0, and left to
// `complete`.
void take_share(Parameters& parameters, std::uint32_t slices) noexcept;

}  // namespace streamfilter
