// Keys of prepared transactions, and their other changes to filters. COMMIT PREPARED and ROLLBACK
// PREPARED call no callback, and another session may issue them, so the changes lie in shared
// memory, in order, until a session notices how the transaction has ended.
//
// A transaction that empties, drops or redefines a filter keeps it locked until then, and the
// filter's next user does the remaining work. After a restart the lock is there again, but no work
// remains: the filter is built from its saved state, once the transaction has ended. (Unlogged
// filters start empty then.)
#pragma once

#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Raises 0A000 if the transaction has done more to filters than add keys and empty them.
void refuse_to_prepare_changes();

// What COMMIT PREPARED does to a slot: saved, unlogged, drop or define.
struct SlotChange {
  ChangeType change;
  FilterSlot* slot;
};

// Stores the changes to all filters of a transaction that is about to be prepared, and `slots`:
// persistence before them, all else behind. False: there are none. Raises 53400 if there is no
// room.
bool add_prepared(const SlotChange* slots, uint32 slot_count);

// Removes what add_prepared has stored, because the transaction aborts instead. Raises nothing.
void remove_prepared(FullTransactionId transaction);

// Puts a key of a transaction that was prepared before the server started back in flight, where its
// place is kept. False: the key was beyond the limit when it was prepared.
bool put_back_in_flight(FilterSlot* slot, TransactionId transaction, const Element& element);

// Applies or forgets what prepared transactions that have ended have done to the filter
// (InvalidOid: to all), and waits where another session does so; keys of a filter that is being
// loaded stay until it is. Cheap if there are none. The caller holds no lock.
void resolve_prepared(Oid filter);
// The same for all filters without waiting. Raises nothing.
void resolve_without_waiting();
// The same only for transactions that have emptied, dropped or redefined the filter. Call it before
// looking for the slot of a locked filter.
void resolve_removals(Oid filter);

// With conflict 'admit', a prepared transaction may add a key that the current one erases. It has a
// place in the log but no mark (order_transaction_changes) any more, so it must end first. That may
// take for ever: the waiting session must hold nothing that others queue for. Raises 55P03, 57014.
bool adds_what_is_erased();
void wait_for_prepared(const CommitWait& wait);

// For shared memory.
void request_prepared();
void start_prepared();

}  // namespace streamfilter::pg
