// Brings the changes of a transaction into a filter, and keys into its slices.
#pragma once

#include "pg/shmem/state_copy.hpp"
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

// The next three take one slice lock at a time.
// Was the key seen? Stops at the first probe that says no.
bool test_in_slices(const FilterSlot* slot, const Header* header, const Element& element);

// insert_new of a key. Until all its probes are set, others can find it absent: a session that must
// not also looks into the table of keys in flight.
void insert_new_in_slices(const FilterSlot* slot, Header* header, const Element& element);

}  // namespace streamfilter::pg
