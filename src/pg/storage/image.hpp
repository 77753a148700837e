// Writes images of logged filters.
#pragma once

#include "pg/shmem/filter_directory.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {

// Writes an image of a slot's filter, and deletes superfluous rows of the log, in the current
// transaction.
struct SlotSave {
  FilterSlot* slot;
  StateTables tables;
  Snapshot snapshot;  // sees the rows that become superfluous
  uint64 log_bytes;   // LogState::bytes before that
};
// Takes the locks for one save; nobody else saves a filter of the database until the transaction
// ends.
void lock_for_save(Oid relation);
// Undoes one lock_for_save.
void unlock_for_save(Oid relation);
// Waits as state_heaps.hpp says. False: the filter is being dropped. Raises 55006, with this name,
// if other transactions take too long to commit. `former`: the slot that holds the filter while
// this one is its copy; otherwise nullptr.
bool begin_save(SlotSave* save, FilterSlot* slot, const char* name, FilterSlot* former = nullptr);
// `state`: what to write, not older than begin_save; nullptr: what everybody sees.
void finish_save(SlotSave* save, const Header* state);

// Starts a worker that saves the filter, if this transaction's rows make the log outgrow the filter
// and no worker was started just now. An image is at most as large as the filter, so images write
// no more than the log does.
void save_in_background_if_due(FilterSlot* slot, uint64 more_bytes);

// Vacuums both heaps, if rows that the filter's latest image has deleted may go, and nobody else is
// at it: the next one takes their room. Needs a transaction without other work.
void vacuum_after_image(Oid filter);

// What is saved of a filter, in log and image.

// Is anything saved of a filter, in log or image? Keeps nobody waiting.
bool is_anything_saved(Oid relation);

// Deletes the saved state of a filter in the current transaction, except rows of identity `except`
// if given. Returns the deleted bytes.
uint64 delete_saved_state(Oid relation, const int64* except = nullptr);

// Call after finish_save of a copy: gives rows logged since to the copy, which has their changes
// already. Returns their bytes.
uint64 move_log_rows(Relation log, const FilterSlot* from, FilterSlot* to);

}  // namespace streamfilter::pg
