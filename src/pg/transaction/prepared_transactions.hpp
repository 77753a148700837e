// The keys of prepared transactions, and what else these do to filters. COMMIT PREPARED and
// ROLLBACK PREPARED call nobody back, and another session may issue them, so the changes lie in
// shared memory, in their order, until somebody sees how the transaction has ended.
//
// A transaction that empties, drops or redefines a filter keeps it locked until then, so its next
// user does what is left to do. After a start the lock is there again, and nothing is left to do:
// the state is built from what is saved, by then of a transaction that has ended. (Unlogged filters
// start empty then.)
#pragma once

#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Raises 0A000 if the transaction has done more to filters than adding keys and emptying them.
void refuse_to_prepare_changes();

// What COMMIT PREPARED does to a slot; ROLLBACK PREPARED frees those that were to be defined.
enum class PreparedChange : uint8 {
  add,     // a new key
  repeat,  // a key that was added before
  reset,   // all keys are forgotten
  saved,   // an image of it is saved
  drop,    // it is freed
  define,  // it becomes the state of its filter
};
struct SlotChange {
  PreparedChange change;
  FilterSlot* slot;
};

// Stores what a transaction that is about to be prepared has done to all filters; then `slots`
// come, in their order. False: nothing. Raises 53400 if there is no room.
bool add_prepared(const SlotChange* slots, uint32 slot_count);

// Takes back what add_prepared has stored; the transaction aborts instead. Raises nothing.
void remove_prepared(FullTransactionId transaction);

// Puts a key of a transaction that was prepared before the server started back in flight: it has a
// place there, however many others have. False: it was one key too many when it was prepared.
bool put_back_in_flight(FilterSlot* slot, TransactionId transaction, const Element& element);

// Applies or forgets the keys of every prepared transaction that has ended; those of a filter that
// is being loaded stay until that is done. Cheap if there are none. No lock may be held. Raises
// nothing.
void resolve_prepared();
// The same, if any may have emptied, dropped or redefined a filter. Called by who looks for the
// slot of a filter that it has locked.
void resolve_removals();

// With conflict 'admit' a prepared transaction may add what the current one erases. It has no mark
// (order_transaction_changes) any more, but its place in the log, so it must end first. It may last
// for ever: who waits for it holds nothing that others queue for. Raises 55P03, 57014.
bool adds_what_is_erased();
void wait_for_prepared(const CommitWait& wait);

// For shared memory.
Size prepared_bytes();
void request_prepared();
void start_prepared();

}  // namespace streamfilter::pg
