// Writes images of logged filters.
#pragma once

#include "pg/shmem/filter_directory.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {

// Writes an image of a slot's filter, and deletes superfluous rows of log and images, in the
// current transaction, which has locked the filter for it: in ShareUpdateExclusiveLock, so one
// session does this at a time.
struct SlotSave {
  FilterSlot* slot;
  FilterSlot* former;  // the slot that holds the filter while this one is its copy, or nullptr
  StateTables tables;
  Snapshot snapshot;  // sees the rows that become superfluous
  uint64 log_bytes;   // LogState::bytes before that
};
// Waits as state_heaps.hpp says. False: the filter is being dropped. Raises 55006, with this name,
// if other transactions take too long to commit.
bool begin_save(SlotSave* save, FilterSlot* slot, const char* name, FilterSlot* former = nullptr);
// Writes it, and deletes what it replaces. `state`: what to write, not older than begin_save;
// nullptr: what everybody sees. Of a copy, which has a life of its own, nobody reads it yet: this
// needs no lock on the filter.
void write_image(SlotSave* save, const Header* state = nullptr);
// Makes it the filter's image.
void finish_save(SlotSave* save);

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

// Deletes the saved state of a filter, which the current transaction has locked. Returns the
// deleted bytes.
uint64 delete_saved_state(Oid relation);

// Writes a header that says that the filter is kept in memory only, in place of everything saved:
// else each lost life would leave a header behind. Rows that another transaction is deleting stay
// for the header after this one: nobody waits for them.
void replace_by_memory_header(FilterSlot* slot);

}  // namespace streamfilter::pg
