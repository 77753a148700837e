// The keys of prepared transactions. COMMIT PREPARED and ROLLBACK PREPARED call nobody back, and
// another session may issue them, so the keys lie in shared memory, in their order, until somebody
// sees how the transaction has ended.
#pragma once

#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Stores what a transaction that is about to be prepared has added to all filters. False: no room.
bool add_prepared(const Pending* first, FullTransactionId transaction);

// Takes back what add_prepared has stored; the transaction aborts instead. Raises nothing.
void remove_prepared(FullTransactionId transaction);

// Puts a key of a transaction that was prepared before the server started back in flight. False: no
// room.
bool put_back_in_flight(FilterSlot* slot, TransactionId transaction, const Element& element);

// Applies or forgets the keys of every prepared transaction that has ended. Cheap if there are
// none. No lock may be held.
void settle_prepared();

// Registers the hook that settles after COMMIT PREPARED and ROLLBACK PREPARED. Called by _PG_init.
void init_prepared_keys();

// For filter_directory.cpp.
Size prepared_bytes();
void request_prepared();
void start_prepared();

}  // namespace streamfilter::pg
