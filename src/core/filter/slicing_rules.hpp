// Which slicings go with which kinds and options.
#pragma once

#include "core/kind/kind_registry.hpp"

namespace streamfilter {

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
