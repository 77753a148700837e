// Converts a filter to another size. A key that was found is still found; keys beyond the new
// parameters' promise are forgotten as the kind forgets.
#pragma once

#include "core/filter/definition_text.hpp"

namespace streamfilter {

// Parameters for `asked` that can take over the state of `from`: derived as usual, or, if a key
// would then have other places, with the former kind, layout and number of hashes. False: there are
// none, `problem` says why. The seed is that of `from`.
bool resized_parameters(const Parameters& from, const Definition& asked, Parameters* result,
                        Problem& problem) noexcept;

struct SliceRange {
  std::uint32_t first, end;
};

// The slices of a filter with parameters `from` whose keys go to slice `index` of one with
// parameters `to`, which were made for these.
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

// The rate that the filter has at most until it holds the keys that it is made for: what its
// parameters imply, or what another size, a merge, or more keys have left of that; but no more than
// `limit`, where repeats pass beyond it.
double fpr_bound(const Header* header, const OverfullLimit& limit) noexcept;

}  // namespace streamfilter
