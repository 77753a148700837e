// Writes images of logged filters, and restores filters from image and log.
#pragma once

extern "C" {
#include "utils/snapshot.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {

// Lets others use a slot that is being built.
struct Opening {
  void (*open)(void* arg);
  void* arg;
  bool leaves_rest;  // to the next one who needs it
};

// Fills the block of a slot that is being built: with what is saved of this filter, or empty.
// `parameters` are those of the definition, with a seed for a filter that has none yet. A damaged
// image is a WARNING; the filter then holds what the log has. Shows progress, can be cancelled.
// `opening` given: called before all of it is there, if it is restored by ranges.
void restore_filter(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
                    const Opening* opening = nullptr);

// The geometry of a filter's usable saved state, if any; another version may have derived it, for
// another size.
bool find_saved_geometry(const FilterRelation* relation, Parameters* parameters);

// For follow_log: reads everything again while sessions read the filter. If the primary has another
// geometry, retires the slot, which then must be rebuilt.
void load_again(FilterSlot* slot, const FilterRelation* relation);
// Remembers the snapshot of the last look, and up to which WAL position it was replayed.
void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed);
// Was the transaction running at that look, or did it begin later?
bool is_news(const SavedState* saved, TransactionId xid);

// On a standby: applies what has been replayed since the last look.
void follow_log(FilterSlot* slot, const FilterRelation* relation);

// Writes an image of a slot's filter, and deletes superfluous rows of the log, in the current
// transaction.
struct SlotSave {
  FilterSlot* slot;
  StateTables tables;
  Snapshot snapshot;  // sees the rows that become superfluous
  uint64 log_bytes;   // SavedState::log_bytes before that
};
// Takes the locks for one save; nobody else saves a filter of the database until the transaction
// ends.
void lock_for_save(Oid relation);
// Undoes one lock_for_save.
void unlock_for_save(Oid relation);
// Waits until the filter has everything that becomes superfluous in the log. False: it is being
// dropped. Raises 55006, with this name, if other transactions take too long to commit. `former`:
// the slot that holds the filter while this one is its copy; otherwise nullptr.
bool begin_save(SlotSave* save, FilterSlot* slot, const char* name, FilterSlot* former = nullptr);
// `state`: what to write, not older than begin_save; nullptr: what everybody sees.
void finish_save(SlotSave* save, const Header* state);

// Vacuums both heaps, if rows that the filter's latest image has deleted may go, and nobody else is
// at it: the next one takes their room. Needs a transaction without other work.
void vacuum_after_image(Oid filter);

// Call after finish_save of a copy: gives rows logged since to the copy, which has their changes
// already. Returns their bytes.
uint64 move_log_rows(Relation log, const FilterSlot* from, FilterSlot* to);

// Is anything saved of a filter, in log or image? Keeps nobody waiting.
bool is_anything_saved(Oid relation);

// Deletes the saved state of a filter in the current transaction, except rows of identity `except`
// if given. Returns the deleted bytes.
uint64 delete_saved_state(Oid relation, const int64* except = nullptr);

// Call around the commit of a transaction that writes to a filter's log. An image waits for
// transactions that have entered, so that it has everything it makes superfluous. Returns what
// `leave_commit` needs.
uint32 enter_commit(FilterSlot* slot);
void leave_commit(FilterSlot* slot, uint32 epoch);

// Starts a worker that saves the filter, if this transaction's rows make the log outgrow the filter
// and no worker was started just now. An image is at most as large as the filter, so images write
// no more than the log does.
void save_in_background_if_due(FilterSlot* slot, uint64 more_bytes);

}  // namespace streamfilter::pg
