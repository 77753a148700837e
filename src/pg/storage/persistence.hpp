// Images of logged filters, and bringing a filter back from its image and the log.
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
};

// Fills the block of a slot that is being built: with what is saved of this filter, or empty.
// `parameters` are those of the definition, with a seed for a filter that has none yet. A damaged
// image is a WARNING; the filter then holds what the log has. Shows progress, can be cancelled.
// `opening` given: called before all of it is there, if it is restored by ranges.
void restore_filter(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
                    const Opening* opening = nullptr);

// What the saved state of a filter says of its geometry, if there is any that can be used; it may
// be that of another version, and of another size.
bool find_saved_geometry(const FilterRelation* relation, Parameters* parameters);

// For follow_log: reads everything again, while others are reading the filter. Where the primary
// has another geometry the slot is retired, and has to be built anew.
void load_again(FilterSlot* slot, const FilterRelation* relation);
// What has been looked at, and up to which position it was replayed.
void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed);
// Did a transaction run when that was remembered, or begin later?
bool is_news(const SavedState* saved, TransactionId xid);

// On a standby: plays on the filter what has been replayed since it was last looked at.
void follow_log(FilterSlot* slot, const FilterRelation* relation);

// Writing an image of the filter in a slot, and deleting what it makes superfluous from the log, as
// part of the current transaction.
struct SlotSave {
  FilterSlot* slot;
  StateTables tables;
  Snapshot snapshot;  // of the rows that are superfluous then
  uint64 log_bytes;   // SavedState::log_bytes before that
};
// Takes the locks of one; nobody else saves a filter of the database until the transaction ends.
void lock_for_save(Oid relation);
// Undoes one call.
void unlock_for_save(Oid relation);
// Waits until the filter has all that is superfluous in the log. False: it is being dropped. Raises
// 55006, with this name, if other transactions take too long to commit.
// `former`: the slot that holds the filter while this one is a copy of it; else nullptr.
bool begin_save(SlotSave* save, FilterSlot* slot, const char* name, FilterSlot* former = nullptr);
// `state`: what to write, not older than begin_save; nullptr: what everybody sees.
void finish_save(SlotSave* save, const Header* state);

// After finish_save of a copy: what has been logged of the filter since becomes the copy's, which
// has it already. Returns the bytes of these rows.
uint64 move_log_rows(Relation log, const FilterSlot* from, FilterSlot* to);

// Is anything saved of a filter, as a log or an image? A look that keeps nobody waiting.
bool is_anything_saved(Oid relation);

// Deletes what is saved of a filter, as part of the current transaction; rows of identity `except`,
// if given, stay. Returns the bytes of the others.
uint64 delete_saved_state(Oid relation, const int64* except = nullptr);

// A transaction that writes to the log of a filter is about to commit, or has ended; an image waits
// for those that have begun, so that it has all of what it makes superfluous. Returns what
// `leave_commit` needs.
uint32 enter_commit(FilterSlot* slot);
void leave_commit(FilterSlot* slot, uint32 epoch);

// Starts a worker that saves the filter, if its log has outgrown it with what this transaction has
// written and none was started just now. An image is as large as the filter at most, so images
// write no more than the log does.
void save_in_background_if_due(FilterSlot* slot, uint64 more_bytes);

}  // namespace streamfilter::pg
