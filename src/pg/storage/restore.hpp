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

// What the newest header in the log says of a filter.
struct SavedLife {
  ChangeType header = ChangeType::unknown;  // which one; unknown: there is none
  bool is_usable = false;                   // contents of this definition are saved, of
  Parameters parameters{};                  // these: another version may have derived another size
  int64 life = 0;
  uint64 next_number = 1;  // of the next row
};
SavedLife saved_life_of(const FilterRelation* relation);

// On a standby: applies what has been replayed since the last look. May retire the slot, which then
// must be built anew.
void follow_log(FilterSlot* slot, const FilterRelation* relation);

}  // namespace streamfilter::pg
