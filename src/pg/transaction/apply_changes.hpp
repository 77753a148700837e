// Brings the changes of a transaction into a filter.
#pragma once

#include "pg/shmem/filter_directory.hpp"
#include "pg/transaction/own_changes.hpp"

namespace streamfilter::pg {

// Applies the changes that count to a filter: to the state of `slot`, under its locks, or to a
// private copy if nullptr. Allocates nothing and cannot fail.
void apply_changes(const ChangeLog* log, Header* header, FilterSlot* slot);

// The same for committed changes, also to the copy that will replace the filter (state_copy.hpp).
void apply_committed(const ChangeLog* log, Header* header, FilterSlot* slot);
// Call when the filter has just forgotten all keys.
void note_emptied(FilterSlot* slot);

// Applies a change that was noted while its slice was copied.
void apply_note(Header* header, const CopyNote& note);

}  // namespace streamfilter::pg
