// Writes a transaction's changes (own_changes.hpp) to the log, within that transaction.
#pragma once

#include "pg/storage/state_heaps.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Writes the row that makes the log readable: the definition's parameters and the seed; then a row
// with the keys' collations, unless all come with the server. `change` says whether there is an
// image, too. Returns the bytes in the log.
Size write_log_header(Relation table, FilterSlot* slot, LogChange change, const Header* header);

// Writes the changes of a transaction that is about to commit or to be prepared, and that has
// locked the log. May raise.
void write_log_records(Relation table, TransactionChanges* changes);

// Call around the commit of a transaction that writes to a filter's log; images wait for it.
// Returns what `leave_commit` needs.
uint32 enter_commit(FilterSlot* slot);
void leave_commit(FilterSlot* slot, uint32 epoch);

}  // namespace streamfilter::pg
