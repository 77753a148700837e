// Writing what a transaction has changed to the log, the heap streamfilter_log, as part of that
// transaction. (What it has changed so far lies in memory: pg/transaction/own_changes.hpp.)
#pragma once

#include "pg/storage/state_heaps.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Writes the row without which the log cannot be read: the definition's parameters and the seed.
// Behind it another one says which collations the keys have, if any does not come with the server.
// `change` says whether there is an image, too.
// Returns the bytes in the log.
Size write_log_header(Relation table, FilterSlot* slot, LogChange change, const Header* header);

// Writes the changes of a transaction that is about to commit or to be prepared to the log, which
// it has locked. May raise.
void write_log_records(Relation table, TransactionChanges* changes);

}  // namespace streamfilter::pg
