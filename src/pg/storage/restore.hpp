// Fills a filter with what is saved of it, by image and log.
#pragma once

#include "pg/storage/restore_ranges.hpp"

namespace streamfilter::pg {

// Fills the block of a slot that is being built: with what is saved of this filter, or empty.
// `parameters` are those of the definition, with a seed for a filter that has none yet. A damaged
// image is a WARNING; the filter then holds what the log has. Shows progress, can be cancelled.
// `opening` given: called before all of it is there, if it is restored by ranges.
void restore_filter(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
                    const Opening* opening = nullptr);

// The geometry of a filter's usable saved state, if any; another version may have derived it, for
// another size.
bool find_saved_geometry(const FilterRelation* relation, Parameters* parameters);

// On a standby: applies what has been replayed since the last look. May retire the slot, which then
// must be built anew.
void follow_log(FilterSlot* slot, const FilterRelation* relation);

}  // namespace streamfilter::pg
