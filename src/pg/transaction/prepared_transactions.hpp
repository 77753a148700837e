// The keys of prepared transactions. COMMIT PREPARED and ROLLBACK PREPARED call nobody back, and
// another session may issue them, so the keys lie in shared memory, in their order, until somebody
// sees how the transaction has ended.
#pragma once

#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Raises 0A000 if the transaction has done more to filters than adding keys.
void refuse_to_prepare_changes();
[[noreturn]] void refuse_to_prepare_removal();

// Stores what a transaction that is about to be prepared has added to all filters. Raises 53400 if
// there is no room.
void add_prepared();

// Takes back what add_prepared has stored; the transaction aborts instead. Raises nothing.
void remove_prepared(FullTransactionId transaction);

// Puts a key of a transaction that was prepared before the server started back in flight: it has a
// place there, however many others have. False: it was one key too many when it was prepared.
bool put_back_in_flight(FilterSlot* slot, TransactionId transaction, const Element& element);

// Applies or forgets the keys of every prepared transaction that has ended; those of a filter that
// is being loaded stay until that is done. Cheap if there are none. No lock may be held. Raises
// nothing.
void resolve_prepared();

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
