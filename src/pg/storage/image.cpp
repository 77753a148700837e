// Writes images: a row for the header, and one per chunk of every slice except chunks of zeros.
#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/vacuum.h"
}

#include <initializer_list>

#include "pg/server/fault_points.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/state_copy.hpp"
#include "pg/storage/image.hpp"
#include "pg/storage/write_log.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

constexpr int64 kRetry = 10 * USECS_PER_SEC;
constexpr int kLongestCommit = 60000;  // ms

// Waits until all transactions that had begun to commit have finished.
void wait_for_commits(FilterSlot* slot, const char* name) {
  wait_for_phases(&slot->log.commits, [name](pg_atomic_uint32* inside) {
    for (int waited = 0; pg_atomic_read_u32(inside) > 0; ++waited) {
      if (waited >= kLongestCommit)
        ereport(ERROR, errcode(ERRCODE_OBJECT_IN_USE), errmsg("could not save filter \"%s\"", name),
                errdetail("Transactions that use it have been committing for more than a minute."));
      pause(1, wait_event(Wait::commits));
    }
  });
}

class ImageWriter {
 public:
  ImageWriter(Relation table, Oid filter, int64 identity)
      : table_(table), row_{filter, 0, 0, 0, identity, GetCurrentTimestamp(), nullptr, 0} {}

  // Writes the bytes of slice `index`.
  void write_slice(uint32 index, const char* bytes, Size size) {
    const int32 first = 1 + static_cast<int32>(index * chunks_of(size));
    for (Size at = 0; at < size; at += kRowData) {
      CHECK_FOR_INTERRUPTS();
      const Size length = Min(kRowData, size - at);
      if (!is_zero(bytes + at, length))
        write(first + static_cast<int32>(at / kRowData), bytes + at, length);
    }
  }

  // The last row: it makes the image complete.
  void write_header(const Header* header) {
    const PackedHeader packed(header->parameters);
    row_.chunks = count_ + 1;
    write(0, reinterpret_cast<const char*>(packed.bytes), packed.size);
  }

  TimestampTz saved() const { return row_.saved; }

 private:
  static bool is_zero(const char* bytes, Size size) {
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
  }

  void write(int32 number, const char* data, Size size) {
    row_.number = number;
    row_.data = data;
    row_.size = size;
    row_.sum = sum_of(row_);
    write_state_row(table_, row_);
    ++count_;
  }

  Relation table_;
  ImageRow row_;
  int32 count_ = 0;
};

// Writes slice by slice, each as it is at some time; or those of `state`.
void write_slices(ImageWriter* writer, const FilterSlot* slot, const Header* state) {
  const Parameters& parameters = block_of(slot)->parameters;
  const Size size = parameters.slice_bytes;
  auto* buffer = static_cast<char*>(MemoryContextAllocHuge(CurrentMemoryContext, size));
  for (uint32 i = 0; i < parameters.slices; ++i) {
    if (state == nullptr) copy_locked_slice(slot, i, buffer);
    writer->write_slice(
        i, state == nullptr ? buffer : reinterpret_cast<const char*>(slice_at(state, i).state),
        size);
  }
  pfree(buffer);
}

}  // namespace

bool begin_save(SlotSave* save, FilterSlot* slot, const char* name, FilterSlot* former) {
  // An image need not wait for a copy: it ends the copy. A statement that only saves has failed
  // before.
  if (former == nullptr) spoil_copy(slot);
  save->slot = slot;
  save->former = former;
  FilterSlot* filled = former != nullptr ? former : slot;
  if (!open_state_tables(slot->relation, RowExclusiveLock, &save->tables)) return false;
  CommandCounterIncrement();  // makes rows visible that this command has written or deleted before
  // Transactions that added to it have committed, so the snapshot sees their rows.
  save->log_bytes = pg_atomic_read_u64(&filled->log.bytes);
  save->snapshot = register_latest_snapshot();
  stop_at(FaultPoint::save);
  resolve_prepared(slot->relation);
  wait_for_commits(filled, name);
  return true;
}

void write_image(SlotSave* save, const Header* state) {
  FilterSlot* slot = save->slot;
  ImageWriter writer(save->tables.images, slot->relation, slot->saved.identity);
  write_slices(&writer, slot, state);
  writer.write_header(block_of(slot));
  TransactionChanges* changes = begin_changes(slot, block_of(slot));
  changes->saving.saved_at = writer.saved();
  changes->saving.replaced_bytes = save->log_bytes;
  // The snapshot does not see the rows just written. What it does not see of the log is of
  // transactions that have come after it.
  delete_rows(save->tables.images, slot->relation, save->snapshot);
  delete_rows(save->tables.log, slot->relation, save->snapshot);
}

void finish_save(SlotSave* save) {
  FilterSlot* slot = save->slot;
  // If the image is damaged one day, the log must still be readable.
  Saving* saving = &begin_changes(slot, block_of(slot))->saving;
  saving->writes_header = true;
  saving->logged_bytes +=
      write_log_header(save->tables.log, slot, ChangeType::image, block_of(slot),
                       save->former != nullptr ? save->former->saved.identity : 0);
  UnregisterSnapshot(save->snapshot);
  close_state_tables(save->tables);
}

void save_in_background_if_due(FilterSlot* slot, uint64 more_bytes) {
  const uint64 bytes = pg_atomic_read_u64(&slot->log.bytes) + more_bytes;
  if (bytes < Max(slot->size, static_cast<uint64>(min_log_size_kb) * 1024) ||
      copy_of(slot) != nullptr)
    return;
  const auto now = static_cast<uint64>(monotonic_us());
  uint64 next = pg_atomic_read_u64(&slot->saved.next_worker);
  if (now < next || !pg_atomic_compare_exchange_u64(&slot->saved.next_worker, &next, now + kRetry))
    return;
  BackgroundWorker worker = make_worker("streamfilter_save_worker", "streamfilter save");
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  snprintf(worker.bgw_name, sizeof worker.bgw_name, "streamfilter save of filter %u",
           slot->relation);
  memcpy(worker.bgw_extra, &slot->database, sizeof(Oid));
  memcpy(worker.bgw_extra + sizeof(Oid), &slot->relation, sizeof(Oid));
  BackgroundWorkerHandle* handle;
  RegisterDynamicBackgroundWorker(&worker, &handle);  // no worker is free: try later
}

// ---- VACUUM of the heaps ------------------------------------------------------------------------

// Gives room back that an image has left. Autovacuum does not do it in time: it goes by statistics
// that a crash loses.

// Can nobody see any more what the filter's latest image has deleted? Then the image's own rows are
// old enough, too.
static bool is_latest_image_old(Relation images, Oid filter) {
  Snapshot snapshot = register_latest_snapshot();
  StateScan scan(images, filter, snapshot);
  const HeapTuple row = scan.next();
  const bool old =
      row != nullptr && TransactionIdPrecedes(HeapTupleHeaderGetXmin(row->t_data),
                                              GetOldestNonRemovableTransactionId(images));
  scan.end();
  UnregisterSnapshot(snapshot);
  return old;
}

// Without giving pages back to the system, which would lock readers out, here and on standbys.
static void vacuum_heap(Relation heap) {
  VacuumParams parameters{};
  parameters.options = VACOPT_VACUUM;
  parameters.freeze_min_age = parameters.freeze_table_age = -1;
  parameters.multixact_freeze_min_age = parameters.multixact_freeze_table_age = -1;
  parameters.SF_LOG_VACUUM_MIN_DURATION = -1;
  parameters.index_cleanup = VACOPTVALUE_AUTO;
  parameters.truncate = VACOPTVALUE_DISABLED;
  parameters.nworkers = -1;
  table_relation_vacuum(heap, &parameters, GetAccessStrategy(BAS_VACUUM));
}

void vacuum_after_image(Oid filter) {
  StateTables tables;
  if (!open_state_tables(filter, AccessShareLock, &tables)) return;
  if (is_latest_image_old(tables.images, filter))
    for (Relation heap : {tables.images, tables.log})
      if (ConditionalLockRelationOid(RelationGetRelid(heap), ShareUpdateExclusiveLock))
        vacuum_heap(heap);
  close_state_tables(tables);
}

// ---- what is saved ------------------------------------------------------------------------------

static bool has_rows(Relation table, Oid filter, Snapshot snapshot) {
  StateScan scan(table, filter, snapshot);
  const bool found = scan.next() != nullptr;
  scan.end();
  return found;
}

bool is_anything_saved(Oid relation) {
  StateTables tables;
  if (!has_state_tables(relation) || !open_state_tables(relation, AccessShareLock, &tables))
    return false;
  Snapshot snapshot = register_latest_snapshot();
  const bool found =
      has_rows(tables.log, relation, snapshot) || has_rows(tables.images, relation, snapshot);
  UnregisterSnapshot(snapshot);
  close_state_tables(tables);
  return found;
}

static uint64 delete_visible_rows(const StateTables& tables, Oid relation) {
  CommandCounterIncrement();
  Snapshot snapshot = register_latest_snapshot();
  const uint64 bytes =
      delete_rows(tables.images, relation, snapshot) + delete_rows(tables.log, relation, snapshot);
  UnregisterSnapshot(snapshot);
  return bytes;
}

// A resize that is under way has deleted the same rows: it gives up, and is not waited for longer.
uint64 delete_saved_state(Oid relation) {
  if (shared_state != nullptr) {
    const LockHeld held(shared_state->directory_lock, LW_SHARED);
    FilterSlot* slot = find_slot(MyDatabaseId, relation, SlotState::live);
    if (slot != nullptr) spoil_copy(slot);
  }
  StateTables tables;
  if (!is_anything_saved(relation) || !open_state_tables(relation, RowExclusiveLock, &tables))
    return 0;
  const uint64 bytes = delete_visible_rows(tables, relation);
  close_state_tables(tables);
  return bytes;
}

// Every session that deletes rows of a filter holds this lock or a stronger one. A prepared
// transaction may hold it for ever.
void replace_by_memory_header(FilterSlot* slot) {
  StateTables tables;
  if (!open_state_tables(slot->relation, RowExclusiveLock, &tables)) return;
  if (ConditionalLockRelationOid(slot->relation, ShareUpdateExclusiveLock))
    delete_visible_rows(tables, slot->relation);
  write_log_header(tables.log, slot, ChangeType::memory, block_of(slot));
  close_state_tables(tables);
}

}  // namespace streamfilter::pg
