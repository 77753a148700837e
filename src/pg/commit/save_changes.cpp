#include "pg/server/postgres.hpp"

#include "pg/commit/save_changes.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/server/citus.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/restore_ranges.hpp"
#include "pg/storage/write_log.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

// The saved state is deleted: the filter's next change, or this one, writes an image.
void note_forgotten(FilterSlot* slot) {
  SavedState* saved = &slot->saved;
  pg_atomic_write_u32(&saved->has_header, 0);
  pg_atomic_write_u64(&slot->log.bytes, 0);
  pg_atomic_fetch_add_u64(&slot->applied, 1);
  saved->last_saved = 0;
  slot->set_aside[0] = '\0';
}

void note_saved(TransactionChanges* changes) {
  SavedState* saved = &changes->slot->saved;
  LogState* log = &changes->slot->log;
  pg_atomic_fetch_add_u64(&log->bytes, static_cast<int64>(changes->saving.logged_bytes));
  raise_count(changes->slot, static_cast<uint64>(changes->saving.latest));
  if (changes->saving.forgotten_level > 0) note_forgotten(changes->slot);
  if (changes->saving.writes_header) pg_atomic_write_u32(&saved->has_header, 1);
  if (changes->saving.drops_saved) pg_atomic_write_u32(&saved->has_header, 0);
  if (changes->saving.saved_at == 0) return;
  saved->last_saved = changes->saving.saved_at;
  changes->slot->set_aside[0] = '\0';  // the save has replaced it
  pg_atomic_fetch_sub_u64(&log->bytes,
                          Min(changes->saving.replaced_bytes, pg_atomic_read_u64(&log->bytes)));
}

bool has_header(const TransactionChanges* changes) {
  return changes->saving.forgotten_level == 0 &&
         pg_atomic_read_u32(&changes->slot->saved.has_header) != 0;
}

// Must this transaction write an image with its own changes? The log lacks merged values, and keys
// added while the filter was unlogged.
bool replaces_saved(const TransactionChanges* changes) {
  if (!is_kept_logged(changes->slot)) return false;
  return is_made_logged(changes->slot) || changes->log.last_merge != kNoChange ||
         !changes->slot->saved.logged || changes->saving.forgotten_level > 0 ||
         (!has_header(changes) && pg_atomic_read_u64(&changes->slot->applied) > 0);
}

bool is_image_due(const TransactionChanges* changes) {
  return changes->saving.wanted_level > 0 || replaces_saved(changes);
}

[[noreturn]] void refuse_to_prepare(const TransactionChanges* changes) {
  const char *name = get_rel_name(changes->slot->relation),
             *call =
                 is_kept_logged(changes->slot) ? "streamfilter_save" : "streamfilter_forget_saved";
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("cannot PREPARE a transaction that replaces what is saved of filter \"%s\"", name),
          errdetail("Its saved state is not what the filter holds now."),
          is_citus_loaded()
              ? errhint("Type: SELECT * FROM run_command_on_all_nodes($$SELECT %s('%s')$$).", call,
                        quote_identifier(name))
              : errhint("Run %s('%s') in a transaction of its own before.", call,
                        quote_identifier(name)));
}

bool is_locked_by_me(const TransactionChanges* changes) {
  Relation relation = RelationIdGetRelation(changes->slot->relation);
  if (!RelationIsValid(relation)) return true;  // it has been dropped
  const bool locked = CheckRelationLockedByMe(relation, AccessExclusiveLock, true);
  RelationClose(relation);
  return locked;
}

// Of an unlogged filter the log says only that it has contents, so that they can be missed. One
// that was emptied last has none.
bool ends_emptied(const TransactionChanges* changes) {
  return changes->log.count > 0 && changes->log.last_reset == changes->log.count - 1;
}

// Keys of a prepared transaction that a restart has forgotten leave a header that memory does not
// know of.
bool is_to_be_noted(const TransactionChanges* changes) {
  return ends_emptied(changes) ? has_header(changes) || is_anything_saved(changes->slot->relation)
                               : !has_header(changes);
}

void note_contents(TransactionChanges* changes) {
  changes->saving.drops_saved = ends_emptied(changes);
  changes->saving.writes_header = !changes->saving.drops_saved;
  if (changes->saving.drops_saved)
    delete_saved_state(changes->slot->relation);
  else
    replace_by_memory_header(changes->slot);
}

// An image that was only asked for lacks this transaction's changes: the log has them.
void save_image(TransactionChanges* changes) {
  changes->saving.replaced = replaces_saved(changes);
  FilterHandle* filter = filter_for_use(changes->slot->relation, Use::test_granted);
  SlotSave save;
  if (filter->slot != changes->slot || !begin_save(&save, filter->slot, filter->relation->name))
    return;
  const bool has_own = changes->saving.replaced && changes->log.count > 0;
  Header* state = has_own ? copy_filter(filter) : nullptr;
  write_image(&save, state);
  finish_save(&save);
  if (state != nullptr) pfree(state);
}

void log_changes(Relation log, TransactionChanges* changes) {
  if (changes->saving.replaced || changes->log.count == 0) return;
  changes->saving.writes_header = true;
  write_log_records(log, changes);
  save_in_background_if_due(changes->slot, changes->saving.logged_bytes);
}

bool has_changes(const TransactionChanges* changes) {
  return is_alive(changes) && changes->log.count > 0;
}

bool is_dropped(const TransactionChanges* changes) {
  const Oid relation = changes->slot->relation;
  return !is_loaded(filter_handle(relation)) && !is_filter(relation);
}

bool has_unsaved_state(const TransactionChanges* changes) {
  return is_alive(changes) && is_kept_logged(changes->slot) &&
         ((is_made_logged(changes->slot) && changes->saving.saved_at == 0) ||
          changes->saving.wanted_level > 0);
}

bool is_saved(const TransactionChanges* changes) {
  return (has_changes(changes) || has_unsaved_state(changes)) &&
         (is_kept_logged(changes->slot) || is_to_be_noted(changes)) && is_latest(changes->slot) &&
         !is_dropped(changes);
}

// Calls f(changes) for every filter with something to save.
template <typename Function>
void for_each_saved(bool logged, Function f) {
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (is_saved(changes) && is_kept_logged(changes->slot) == logged) f(changes);
}

constexpr char kHeaps[] = "while waiting for the heaps that filters are saved in";
constexpr char kImage[] = "while waiting for another session that saves the filter";

// What a transaction locks to save its changes: the log, nullptr if nothing is logged, and the
// filters that it writes images of.
struct SaveLocks {
  Relation log = nullptr;
  List* filters = NIL;
};

Relation lock_log(Oid relation, const CommitWait& wait) {
  if (Relation log = try_to_open_log(relation)) return log;
  Relation log;
  wait.for_lock(kHeaps,
                [&] { log = open_state_table(StateTable::log, relation, RowExclusiveLock); });
  return log;
}

// Call before the order of changes is settled: sessions that wait for this transaction then may
// hold none of these locks.
SaveLocks lock_saved(const CommitWait& wait) {
  SaveLocks locks;
  Oid any = InvalidOid;
  for_each_saved(true, [&](const TransactionChanges* changes) {
    any = changes->slot->relation;
    if (is_image_due(changes)) locks.filters = lappend_oid(locks.filters, any);
  });
  list_sort(locks.filters, list_oid_cmp);
  for (const Oid filter : each_oid(locks.filters))
    wait.for_lock(kImage, [filter] { LockRelationOid(filter, ShareUpdateExclusiveLock); });
  if (OidIsValid(any)) locks.log = lock_log(any, wait);
  return locks;
}

void unlock_saved(const SaveLocks& locks) {
  for (const Oid filter : each_oid(locks.filters))
    UnlockRelationOid(filter, ShareUpdateExclusiveLock);
  table_close(locks.log, RowExclusiveLock);
}

// A session that is marked, or holds a lock that others queue for, must not wait for a prepared
// transaction, which may last for ever. One may be prepared just before the mark is set, so look
// again, and in that case release everything first. Returns the log; nullptr if nothing is logged.
Relation settle_order() {
  const CommitWait wait;
  for (;;) {
    wait_for_prepared(wait);
    const SaveLocks locks = lock_saved(wait);
    if (locks.log == nullptr) return nullptr;
    order_transaction_changes(wait);
    if (!adds_what_is_erased()) return locks.log;
    forget_order();
    unlock_saved(locks);
  }
}

// Images come first: after enter_phase, this transaction must not wait for an image, because the
// session that writes it may wait for this transaction.
void save_logged() {
  Relation log = settle_order();
  if (log == nullptr) return;
  for_each_saved(true, [](TransactionChanges* changes) {
    if (is_image_due(changes)) save_image(changes);
  });
  for_each_saved(true, [log](TransactionChanges* changes) { log_changes(log, changes); });
  table_close(log, NoLock);
}

bool is_any_saved(bool (*such)(const TransactionChanges*) = nullptr) {
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (is_saved(changes) && (such == nullptr || such(changes))) return true;
  return false;
}

// Where a filter is being restored, its changes are of slices that are there: who made them has
// waited. This sees to it whatever way they came.
void await_changed_slices() {
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next) {
    if (!is_alive(changes) || is_whole(changes->slot) || changes->log.last_reset != kNoChange)
      continue;
    FilterHandle* filter = filter_handle(changes->slot->relation);
    if (!is_loaded(filter)) continue;
    ChangeReader reader(&changes->log, 0);
    for (uint32 i = 0; i < changes->log.count; ++i) {
      reader.next();
      await_slice(changes->slot, filter->relation, reader.element().hash);
    }
  }
}

}  // namespace

// The server's portals are gone at commit and their snapshots with them, but a heap is not written
// without one. Rows of the log are never read by it, and have no parts elsewhere: any will do.
void save_transaction_changes() {
  await_changed_slices();
  if (!is_any_saved()) return;
  PushActiveSnapshot(is_any_saved(is_image_due) ? GetTransactionSnapshot() : SnapshotSelf);
  const CommitWait wait;
  for_each_saved(false, [&wait](TransactionChanges* changes) {
    wait.for_lock(kHeaps, [changes] { note_contents(changes); });
  });
  save_logged();
  PopActiveSnapshot();
}

// An image in a prepared transaction keeps others from saving the filter until its end. A
// transaction that has the filter for itself, to alter, empty or drop it, writes one all the same.
void refuse_to_prepare_saving() {
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next)
    if (!is_dropped(changes) &&
        (changes->saving.wanted_level > 0 || changes->saving.forgotten_level > 0 ||
         (has_changes(changes) && replaces_saved(changes) && !is_locked_by_me(changes))))
      refuse_to_prepare(changes);
}

void note_prepared_changes() {
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (is_alive(changes))
      pg_atomic_fetch_add_u64(&changes->slot->log.bytes,
                              static_cast<int64>(changes->saving.logged_bytes));
}

void note_saved_changes() {
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (is_alive(changes)) note_saved(changes);
}

void end_saving() {
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (changes->saving.committing && is_alive(changes))
      leave_phase(&changes->slot->log.commits, changes->saving.epoch);
}

}  // namespace streamfilter::pg
