// What the current transaction has changed in filters and others must not see yet: applied when it
// commits, forgotten when it or the savepoint rolls back.
#pragma once

#include "pg/shmem/in_flight_table.hpp"
#include "pg/transaction/change_log.hpp"

namespace streamfilter::pg {

// Where the changes of a subtransaction begin in the log.
struct Mark {
  Mark* below;
  SubTransactionId subtransaction;
  int level;
  uint32 start;
  uint32 owner;  // index in Pending::owners; kNoEntry: not needed yet
  int64 latest;  // Pending::latest at that time
};

// One per filter (use of a slot) that the transaction has changed.
struct Pending {
  Pending* next;
  FilterSlot* slot;
  uint64 generation;  // of the slot; another one by now: that state is gone
  Header* header;
  // More keys than the table takes: the rest is only in the log. With conflict 'wait' the slot says
  // so, and others wait for any key; otherwise they take such keys as new.
  bool overflowed;
  int64 latest;        // time of a key so far
  bool logged;         // its changes go to the log, too
  bool committing;     // begin_commit was called, for `epoch`
  bool replaced;       // what was saved is deleted or replaced by an image
  bool writes_header;  // the header is saved with this transaction
  bool drops_saved;    // what was saved is deleted with this transaction
  uint32 epoch;
  uint64 journal_bytes;
  TimestampTz saved_at;  // of an image that this transaction has written; 0: none
  uint64 freed_bytes;    // of the log
  uint32 announced;      // keys in the table of keys in flight
  uint32 unannounced;    // keys in the log only
  uint32 published;      // of these, in FilterSlot::unannounced
  KeyLog log;
  Mark* marks;
  Owner* owners;
  uint32 owner_count, owner_places;
};

// What the transaction has done to this use of the slot; nullptr: nothing.
Pending* find_pending(const FilterSlot* slot, uint64 generation);
// The same, begun if there is nothing. Raises 53200.
Pending* begin_pending(FilterSlot* slot, Header* header, bool logged);

// What the transaction's own changes say of a key. One that has left the window since is untouched.
enum class OwnView : uint8 { untouched, added, forgotten };
struct OwnKey {
  OwnView view = OwnView::untouched;
  KeySpot spot;  // of its changes; good until the next change
};
OwnKey find_own(const Pending* pending, const Element& element);

// The element with the time of the row that this transaction accepted, if it did: a repeat does not
// make a window longer.
Element as_accepted(const Pending* pending, const Element& element, const KeySpot& spot);

// Makes room for one change of the current subtransaction; `append_pending` cannot fail then.
// Raises 53200, 54000.
void reserve_pending(Pending* pending);
void append_pending(Pending* pending, Change change, const Element& element,
                    const KeySpot& spot = {});

// The same for a new key that owner_of_new_key's owner has put into the table of keys in flight.
void append_announced(Pending* pending, const Element& element, const KeySpot& spot);

// Who the current subtransaction is to the table of keys in flight. It gets a transaction id. Needs
// reserve_pending.
Owner owner_of_new_key(Pending* pending);

// Takes the keys out of the table of keys in flight; others have been told to wait for any key.
void withdraw_announcements(Pending* pending);

// Tells others how many keys are in the log only. Called at the end of a statement; in between,
// what others see lacks up to a 64th.
void publish_counts();

// Is the state that was changed still in its place?
inline bool is_alive(const Pending* pending) {
  return pending->slot->generation == pending->generation;
}

// What the transaction has changed so far, as a list; nullptr: nothing.
Pending* first_pending();

// The rest is called by the coordinator (pg/commit) when the transaction, or a subtransaction of
// it, ends; it allocates nothing and cannot raise.

// The transaction has committed: its changes are brought into the filters; then these count them,
// and the keys are taken out of the table of keys in flight. Whoever finds a key in neither place
// came before the transaction.
void apply_transaction_changes();
void publish_transaction_changes();
// It has rolled back: the keys are taken out of the table.
void retract_transaction_changes();
// Last: lets go of the slots. Changes of a prepared transaction live on in
// prepared_transactions.hpp.
void forget_transaction_changes();

void keep_changes_of_subtransaction(SubTransactionId parent);
void retract_changes_of_subtransaction();

}  // namespace streamfilter::pg
