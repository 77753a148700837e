// Writes a transaction's changes (own_changes.hpp) to the log, within that transaction.
#pragma once

#include "pg/storage/state_heaps.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Writes the row that makes the log readable: the definition's parameters and the seed; then a row
// with the keys' collations, unless all come with the server. `change` says whether there is an
// image, too; rows of the life `former` belong to this one as well. Returns the bytes in the log.
Size write_log_header(Relation table, FilterSlot* slot, ChangeType change, const Header* header,
                      int64 former = 0);

// Writes the changes of a transaction that is about to commit or to be prepared, and that has
// locked the log. May raise. Enters LogState::commits until the transaction has committed: an image
// waits for it, so that it has everything it makes superfluous.
void write_log_records(Relation table, TransactionChanges* changes);

}  // namespace streamfilter::pg
