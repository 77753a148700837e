// The wordings of a definition: what is derived from it can be asked for with each of its options
// written down, or left out.
#pragma once

#include "core/format/parameters.hpp"

namespace streamfilter {

// Number of wordings of complete parameters.
std::uint64_t count_wordings(const Parameters& complete) noexcept;

// One of them, from number 0 on. It has neither keys, fpr, seed nor NULL policy, and need not
// derive the parameters that it is a wording of.
Definition wording_of(const Parameters& complete, std::uint64_t number) noexcept;

}  // namespace streamfilter
