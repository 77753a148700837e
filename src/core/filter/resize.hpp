// A filter in another size, which knows what the former one did. A key that would be found there is
// found here; what was too much for the parameters' promise is forgotten as the kind forgets.
#pragma once

#include "core/filter/definition.hpp"
#include "core/format/layout.hpp"

namespace streamfilter {

// The parameters of a filter as `asked` that can take over the state of one of parameters `from`:
// those that are derived anyway, or, where these have other places for a key, with its kind,
// layout and number of hashes. False: there are none, `problem` says why. The seed is that of
// `from`.
bool resized_parameters(const Parameters& from, const Definition& asked, Parameters* result,
                        Problem& problem) noexcept;

struct SliceRange {
  std::uint32_t first, end;
};

// The slices of a filter of parameters `from` that slice `index` of one of parameters `to`, which
// were made for these, takes its keys from.
SliceRange sources_of(const Parameters& from, const Parameters& to, std::uint32_t index) noexcept;

// Can these slices of the state `from` be brought into these parameters, which are made for its
// own? False: keys that were removed would be known again, `problem` says so.
bool can_take_over(const Header* from, SliceRange slices, const Parameters& to,
                   Problem& problem) noexcept;

// Fills the formatted, empty slice `index` of `to` with what belongs there of `from`, whose
// parameters it was made for; only the header and the sources_of are read. `scratch`: memory for so
// many slices of `to`.
unsigned scratch_slices(const Parameters& from, const Parameters& to) noexcept;
void resize_slice(Header* to, std::uint32_t index, const Header* from, void* scratch) noexcept;

// The false-positive rate that a filter which has been resized comes to with the number of keys
// that it is made for; 0 for kinds that keep theirs whatever comes.
double fpr_to_come(const Header* header) noexcept;

}  // namespace streamfilter
