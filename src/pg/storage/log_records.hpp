// Writing what a transaction has changed to the log, as part of that transaction, and playing the
// log on a filter.
#pragma once

#include "pg/storage/state_heaps.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// Writes the row without which the log cannot be read: the definition's parameters and the seed.
// `change` says whether there is an image, too.
void write_log_header(Relation table, FilterSlot* slot, LogChange change, const Header* header);

// Writes the changes of a transaction that is about to commit or to be prepared. May raise.
void write_log_records(TransactionChanges* changes);

// The changes that a row stands for, one by one. False: the row is damaged.
struct LoggedChange {
  LogChange change;
  Element element;
};
uint64 count_changes(const LogRow& row);
LoggedChange change_at(const LogRow& row, uint64 position);
bool is_sound(const LogRow& row);

}  // namespace streamfilter::pg
