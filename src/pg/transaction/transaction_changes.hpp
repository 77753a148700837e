// What the current transaction has changed in filters, which others must not see yet: applied at
// commit, forgotten when the transaction or the savepoint rolls back.
#pragma once

#include "pg/server/lock_wait.hpp"
#include "pg/shmem/in_flight_table.hpp"
#include "pg/transaction/own_changes.hpp"

namespace streamfilter::pg {

// Start of a subtransaction's changes in the log.
struct Savepoint {
  Savepoint* below;
  SubTransactionId subtransaction;
  int level;
  uint32 start;
  uint32 owner;  // index in TransactionChanges::owners; kNoChange: none yet
  int64 latest;  // TransactionChanges::latest at that time
};

// What the transaction saves of its changes (pg/commit).
struct Saving {
  bool committing;     // enter_phase was called, for `epoch`
  bool replaced;       // the saved state is deleted, or replaced by an image
  bool writes_header;  // this transaction saves the header
  bool drops_saved;    // this transaction deletes the saved state
  uint32 epoch;
  uint64 logged_bytes;    // of rows that it has written to the log, and
  int64 latest;           // the number of the last one
  TimestampTz saved_at;   // time of an image that this transaction has written; 0: none
  uint64 replaced_bytes;  // of the log, which the image makes superfluous
  int wanted_level;       // the subtransaction that wants an image; 0: none
  int forgotten_level;    // the subtransaction that has deleted the saved state; 0: none
};

// One per filter (use of a slot) that the transaction has changed.
struct TransactionChanges {
  TransactionChanges* next;
  TransactionChanges* next_in_bucket;
  Oid relation;  // of the slot when they began
  FilterSlot* slot;
  uint64 generation;  // of the slot; if it differs now, that state is gone
  Header* header;
  // The transaction has more keys than the table takes: the others are only in the log. With
  // conflict 'wait' the slot says so, and others wait for any key; otherwise they take such keys as
  // new.
  bool overflowed;
  bool grows;           // beyond max_in_flight its keys take dynamic memory, while there is any
  bool erases;          // it has forgotten a key: counted in Unfinished::erasing
  bool only_adds;       // a key in the log is an added one: it has forgotten none, emptied and
                        // merged nothing, and keys do not expire
  bool announced_keys;  // counted in Unfinished::arriving_keys
  int64 latest;         // time of the newest event
  WindowTicks window;   // of the filter
  uint32 registered;    // keys in the table of keys in flight
  uint32 unregistered;  // keys only in the log
  uint32 published;     // of these, counted in Unfinished::unregistered
  ChangeLog log;
  Savepoint* savepoints;
  Owner* owners;
  uint32 owner_count, owner_capacity;
  Saving saving;
};

// The transaction's changes to this use of the relation's slot; nullptr: none.
TransactionChanges* find_changes(Oid relation, const FilterSlot* slot, uint64 generation);
// Finds the changes, or begins them if there are none. Raises 53200.
TransactionChanges* begin_changes(FilterSlot* slot, Header* header);

// Makes room for one change of the current subtransaction, so that `append_change` cannot fail.
// Raises 53200, 54000.
void note_savepoint(TransactionChanges* changes);
inline void reserve_own_change(TransactionChanges* changes) {
  if (unlikely(changes->savepoints == nullptr ||
               changes->savepoints->subtransaction != GetCurrentSubTransactionId()))
    note_savepoint(changes);
  reserve_change(&changes->log);
}
// The same for a new key. Sets the current subtransaction's owner in the table of keys in flight,
// which assigns a transaction id, and returns it.
void begin_new_keys(TransactionChanges* changes);
inline Owner reserve_new_key(TransactionChanges* changes) {
  const Savepoint* savepoint = changes->savepoints;
  if (unlikely(savepoint == nullptr || savepoint->owner == kNoChange ||
               savepoint->subtransaction != GetCurrentSubTransactionId()))
    begin_new_keys(changes);
  reserve_change(&changes->log);
  return changes->owners[changes->savepoints->owner];
}
void append_own_change(TransactionChanges* changes, ChangeType type, const Element& element,
                       const IndexHint& hint = {});

// Adds a new key that the owner in reserve_new_key has put into the table of keys in flight.
void append_registered(TransactionChanges* changes, const Element& element, const IndexHint& hint);
void append_erasure(TransactionChanges* changes, const Element& element, bool registered);

// Removes the keys from the table of keys in flight, because the filter has them, or because others
// have been told to wait for any key.
void withdraw_registrations(TransactionChanges* changes);

// Enters all keys of the log into the table of keys in flight, for the subtransactions that have
// added them, so that others need not wait for any key. False: there is no room, or a
// subtransaction's owner is not known; then the keys stay only in the log. Raises what waiting can.
bool register_all_keys(TransactionChanges* changes);

// Tells others how many keys are only in the log. Called at the end of a statement; in between, the
// published count may be 1/64 too low.
void publish_counts();
// The same of one filter.
void publish_count(TransactionChanges* changes);

// Takes the keys of all changes from number `keep` on back, as far as others see them. Cannot
// raise.
void retract_from(TransactionChanges* changes, uint32 keep);

// Takes back the addition of a key whose row was not stored after all. Does nothing if the key is
// none of the transaction's own, or if it has been forgotten since. Cannot raise.
void take_back_key(TransactionChanges* changes, uint64 hash);

// Is the state that was changed still in its place?
inline bool is_alive(const TransactionChanges* changes) {
  return changes->slot->generation == changes->generation;
}

// What the transaction has changed so far, as a list; nullptr: nothing.
TransactionChanges* first_changes();

// The rest is called by the coordinator (pg/commit) when the transaction ends; it allocates nothing
// and cannot raise.

// The transaction is about to log its changes: it is marked as arriving (arrivals.hpp), and waits
// for those marked before it whose changes do not commute with its own. Raises 55P03, 57014.
void order_transaction_changes(const CommitWait& wait);
// Takes that back: the transaction has to wait for a prepared one first.
void forget_order();
// The transaction is about to commit: tells others that its changes arrive. Both are taken back by
// forget_transaction_changes.
void announce_transaction_changes();
// The transaction has committed: its changes are brought into the filters; then these count them,
// and the keys are taken out of the table of keys in flight. A session that finds a key in
// neither place came before the transaction.
void apply_transaction_changes();
void publish_transaction_changes();
// The transaction has rolled back: takes its keys out of the table.
void retract_transaction_changes();
// Last: lets go of the slots. Changes of a prepared transaction live on in
// prepared_transactions.hpp.
void forget_transaction_changes();

// ---- savepoints ---------------------------------------------------------------------------------

// What happens to the changes of a subtransaction at its end. Called by the coordinator
// (pg/commit); allocates nothing and cannot raise.

// Gives the changes to the parent.
void keep_changes_of_subtransaction(SubTransactionId parent);
// Undoes the changes, and removes their keys from the table of keys in flight.
void retract_changes_of_subtransaction();

// What the transaction's own changes say about a key, before others see them.

// A key whose event is not in the window of the judged one is untouched. `late`: the judged event
// is, whatever the filter has.
enum class OwnView : uint8 { untouched, added, forgotten, late };
struct OwnKey {
  OwnView view = OwnView::untouched;
  IndexHint hint;  // of its changes; valid until the next change
};
inline OwnView view_of_added(const IndexHint& hint) {
  return hint.last == kNoChange ? OwnView::untouched : OwnView::added;
}
OwnView view_of_changed(const TransactionChanges* changes, const Element& element, uint32 last);
inline OwnKey view_at(const TransactionChanges* changes, const Element& element,
                      const IndexHint& hint) {
  const bool is_untouched =
      hint.last == kNoChange && (changes->log.last_reset & changes->log.last_merge) == kNoChange;
  return {changes->only_adds || is_untouched ? view_of_added(hint)
                                             : view_of_changed(changes, element, hint.last),
          hint};
}
// `changes` may be nullptr: there are none.
inline OwnKey find_own(const TransactionChanges* changes, const Element& element) {
  return changes == nullptr ? OwnKey{}
                            : view_at(changes, element, find_key(&changes->log, element.hash));
}

// The element with the time of the row that this transaction accepted, if it did: a repeat does not
// prolong a window, but by option extend.
Element as_accepted(const TransactionChanges* changes, const Element& element,
                    const IndexHint& hint);

}  // namespace streamfilter::pg
