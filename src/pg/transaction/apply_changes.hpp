// Brings the changes of a transaction into a filter.
#pragma once

#include "pg/shmem/filter_directory.hpp"
#include "pg/transaction/own_changes.hpp"

namespace streamfilter::pg {

// Plays the changes that count on a filter: the state of `slot`, under its locks, or with nullptr a
// private copy. Allocates nothing and cannot fail.
void apply_changes(const ChangeLog* log, Header* header, FilterSlot* slot);

// The same for what has committed, and for the copy that the filter is becoming (state_copy.hpp).
void apply_committed(const ChangeLog* log, Header* header, FilterSlot* slot);
// The filter has just forgotten all keys.
void note_emptied(FilterSlot* slot);

// A change that was noted while a slice was copied.
void apply_note(Header* header, const CopyNote& note);

}  // namespace streamfilter::pg
