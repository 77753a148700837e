// From a definition of a known kind to complete parameters, and back.
#pragma once

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

// Derives memory, slices, and by the kind's own formulas the rest.
// Errors: too_small, too_large, conflict (a promise that cannot be kept), out_of_range.
bool derive_parameters(Definition& definition, Problem& problem) noexcept;

// The least memory (to 1/64) in which the definition keeps fpr for its keys; 0: none.
std::uint64_t memory_for_keys(const Definition& definition) noexcept;

// The most keys (to 1/1024) that it keeps fpr for in its memory; 0: none.
std::uint64_t keys_for_memory(Definition definition) noexcept;

// The definition that has every parameter given; completing it yields the same parameters. Derived
// numbers are left out, so that completing it derives them anew. Safe on any bytes.
Definition definition_of(const Parameters& parameters) noexcept;

// How many elements back a key is still remembered with at most `fnr` false negatives; infinity if
// there is no such limit, NaN if the kind has no model.
double window_keys(const Parameters& parameters, double fnr) noexcept;

}  // namespace streamfilter
