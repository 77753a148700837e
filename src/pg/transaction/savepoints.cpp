#include "pg/server/postgres.hpp"

#include "pg/transaction/savepoints.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

void pop_savepoint(TransactionChanges* changes) {
  Savepoint* savepoint = changes->savepoints;
  changes->savepoints = savepoint->below;
  pfree(savepoint);
}

void abort_subtransaction(TransactionChanges* changes, int level) {
  if (changes->saving.level >= level) changes->saving.saved_at = changes->saving.replaced_bytes = 0;
  if (changes->saving.forgotten_level >= level) changes->saving.forgotten_level = 0;
  uint32 keep = changes->log.count;
  while (changes->savepoints != nullptr && changes->savepoints->level >= level) {
    keep = changes->savepoints->start;
    changes->latest = changes->savepoints->latest;
    // Entries that survive belong to older savepoints.
    if (changes->savepoints->owner != kNoChange) changes->owner_count = changes->savepoints->owner;
    pop_savepoint(changes);
  }
  retract_from(changes, keep);
  while (changes->log.count > keep) {
    const Change* last = change_at(&changes->log, changes->log.count - 1);
    if (last->is(ChangeType::merge)) pfree(merged_value(last));
    undo_change(&changes->log);
  }
}

// Gives a subtransaction's changes to its parent.
void commit_subtransaction(TransactionChanges* changes, int level, SubTransactionId parent) {
  if (changes->saving.level == level) --changes->saving.level;
  if (changes->saving.forgotten_level == level) --changes->saving.forgotten_level;
  if (changes->savepoints == nullptr || changes->savepoints->level < level) return;
  const Savepoint* below = changes->savepoints->below;
  if (below != nullptr && below->level == level - 1) {
    pop_savepoint(changes);
    return;
  }
  changes->savepoints->level = level - 1;
  changes->savepoints->subtransaction = parent;
  changes->savepoints->owner = kNoChange;
}

}  // namespace

void keep_changes_of_subtransaction(SubTransactionId parent) {
  const int level = GetCurrentTransactionNestLevel();
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    commit_subtransaction(changes, level, parent);
}

void retract_changes_of_subtransaction() {
  const int level = GetCurrentTransactionNestLevel();
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    abort_subtransaction(changes, level);
}

}  // namespace streamfilter::pg
