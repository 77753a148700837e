#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "access/twophase.h"
#include "access/xlogrecovery.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#include <algorithm>

#include "streamfilter/core/filter.hpp"
#include "streamfilter/pg/image_format.hpp"
#include "streamfilter/pg/key_journal.hpp"
#include "streamfilter/pg/prepared_keys.hpp"
#include "streamfilter/pg/query.hpp"
#include "streamfilter/pg/saved_state.hpp"

namespace streamfilter::pg {
namespace {

// Rows of the log, copied, in the order of their numbers.
struct Rows {
  LogRow* rows = nullptr;
  uint64 count = 0;
  uint64 places = 0;
  uint64 bytes = 0;
  uint64 damaged = 0;
};

void keep_row(Rows* rows, const LogRow& row) {
  if (rows->count == rows->places) {
    rows->places = Max(rows->places * 2, uint64{256});
    const Size bytes = sizeof(LogRow) * rows->places;
    rows->rows = static_cast<LogRow*>(
        rows->rows == nullptr ? MemoryContextAllocHuge(CurrentMemoryContext, bytes)
                              : repalloc_huge(rows->rows, bytes));
  }
  LogRow* kept = &rows->rows[rows->count++];
  *kept = row;
  auto* data = static_cast<char*>(palloc(row.size + 1));
  memcpy(data, row.data, row.size);
  kept->data = data;
  rows->bytes += row.size;
}

void sort_rows(Rows* rows) {
  std::sort(rows->rows, rows->rows + rows->count,
            [](const LogRow& a, const LogRow& b) { return a.number < b.number; });
}

// Reads the filter's rows of the log for which wanted(xmin) holds.
template <typename Wanted>
Rows read_log(Relation table, Oid filter, Snapshot snapshot, Progress* progress, Wanted&& wanted) {
  Rows rows;
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection)) {
    progress->add(1);
    if (filter_of(table, tuple) != filter ||
        !wanted(HeapTupleHeaderGetXmin(tuple->t_data), tuple->t_data))
      continue;
    LogRow row;
    if (read_row(table, tuple, &row) && is_sound(row))
      keep_row(&rows, row);
    else
      ++rows.damaged;
  }
  table_endscan(scan);
  sort_rows(&rows);
  return rows;
}

void warn_damaged(const FilterRelation* relation, const char* what, const char* detail) {
  ereport(WARNING, errcode(ERRCODE_DATA_CORRUPTED),
          errmsg("the saved %s of filter \"%s\" is damaged", what, relation->name),
          errdetail("%s", detail),
          errhint("The filter goes on without it, so repeats of older keys are not recognised."));
}

// The parameters of a saved header, if they are this definition's but for the seed and for wishes
// that may have been altered.
bool take_parameters(const char* bytes, const FilterRelation* relation, const Parameters& wanted,
                     int64 identity, Parameters* result) {
  Header header;
  memcpy(static_cast<void*>(&header), bytes, sizeof header);
  Parameters saved = header.parameters;
  saved.keys = wanted.keys;
  saved.fpr = wanted.fpr;
  saved.nulls = wanted.nulls;
  Parameters expected = wanted;
  expected.seed = saved.seed;
  if (memcmp(&saved, &expected, sizeof saved) != 0 ||
      identity != identity_of(relation->signature, saved.seed) ||
      (relation->definition.seed_given && saved.seed != wanted.seed))
    return false;
  *result = saved;
  return true;
}

// Reads the image of the filter into the zeroed slices of the block.
struct Image {
  bool found = false;    // one of this definition
  bool stale = false;    // rows of another definition
  const char* damage = nullptr;
  int64 identity = 0;
  TimestampTz saved = 0;
  Parameters parameters{};
};

const char* place_chunk(const ImageRow& row, Header* block) {
  const Parameters& parameters = block->parameters;
  const uint64 per_slice = chunks_of(parameters.slice_bytes);
  const uint64 index = static_cast<uint64>(row.number) - 1;
  if (index >= per_slice * parameters.slices) return "A chunk lies outside of the filter.";
  const Size at = index % per_slice * kRowData;
  if (row.size != Min(kRowData, parameters.slice_bytes - at)) return "A chunk has another size.";
  memcpy(reinterpret_cast<char*>(slice_at(block, static_cast<uint32>(index / per_slice)).state) + at,
         row.data, row.size);
  return nullptr;
}

Image read_image(Relation table, const FilterRelation* relation, Snapshot snapshot, Header* block,
                 Progress* progress) {
  Image image;
  int32 rows = 0, chunks = -1;
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection)) {
    progress->add(1);
    if (filter_of(table, tuple) != relation->relid) continue;
    ImageRow row;
    if (!read_row(table, tuple, &row) || row.number < 0 || row.sum != sum_of(row)) {
      image.damage = "A chunk is not what was written.";
      continue;
    }
    ++rows;
    if (rows > 1 && row.saved != image.saved) image.damage = "Chunks of several images are mixed.";
    image.saved = row.saved;
    image.identity = row.image;
    const char* damage = nullptr;
    if (row.number == 0) {
      chunks = row.chunks;
      image.found = row.size == sizeof(Header) &&
                    take_parameters(row.data, relation, block->parameters, row.image,
                                    &image.parameters);
      image.stale = !image.found;
    } else {
      damage = place_chunk(row, block);
    }
    if (damage != nullptr) image.damage = damage;
  }
  table_endscan(scan);
  if (rows > 0 && chunks != rows && image.damage == nullptr) image.damage = "Chunks are missing.";
  return image;
}

void clear_slices(Header* block) {
  for (uint32 i = 0; i < block->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    memset(static_cast<void*>(slice_at(block, i).state), 0, block->parameters.slice_bytes);
  }
}

void format_slices(Header* block) {
  for (uint32 i = 0; i < block->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    format_slice(block, i);
  }
}

// Plays rows on a filter that others may be reading.
void play_rows(FilterSlot* slot, Header* block, const Rows& rows, uint64 from, int64 identity) {
  for (uint64 i = from; i < rows.count; ++i) {
    CHECK_FOR_INTERRUPTS();
    const LogRow& row = rows.rows[i];
    if (row.identity != identity || row.change == LogChange::header) continue;
    if (row.change == LogChange::reset) {
      format_slices(block);
      continue;
    }
    const uint64 count = count_changes(row);
    for (uint64 j = 0; j < count; ++j) {
      const JournalChange it = change_at(row, j);
      LWLock* lock = slice_lock(slot, slice_of(block->parameters, it.element.hash));
      LWLockAcquire(lock, LW_EXCLUSIVE);
      if (it.change != LogChange::erase)
        insert(block, it.element);
      else if (ops_of(block).erase != nullptr)
        erase(block, it.element);
      LWLockRelease(lock);
    }
  }
}

// Puts keys of transactions that were prepared before the server stopped back in flight. Nobody
// else can have written to this filter's log and not have ended: its state is only being built.
void restore_prepared(Relation log, FilterSlot* slot, const FilterRelation* relation,
                      Progress* progress) {
  if (max_prepared_xacts == 0 || RecoveryInProgress()) return;
  TableScanDesc scan = table_beginscan(log, SnapshotAny, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection)) {
    progress->add(1);
    if (filter_of(log, tuple) != relation->relid) continue;
    const TransactionId xid = HeapTupleHeaderGetXmin(tuple->t_data);
    LogRow row;
    if (!TransactionIdIsNormal(xid) || TransactionIdIsCurrentTransactionId(xid) ||
        !TransactionIdIsInProgress(xid) || !read_row(log, tuple, &row) || !is_sound(row) ||
        (row.change != LogChange::add && row.change != LogChange::roles))
      continue;
    const uint64 count = count_changes(row);
    for (uint64 i = 0; i < count; ++i)
      if (!put_back_in_flight(slot, xid, change_at(row, i).element)) {
        ereport(WARNING, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                errmsg("keys of prepared transaction %u do not fit among those in flight", xid),
                errhint("Raise streamfilter.max_in_flight and restart the server."));
        break;
      }
  }
  table_endscan(scan);
}

void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed) {
  SavedState* saved = &slot->saved;
  saved->seen_xmin = snapshot->xmin;
  saved->seen_xmax = snapshot->xmax;
  saved->seen_count = -1;
  if (snapshot->takenDuringRecovery && !snapshot->suboverflowed &&
      snapshot->subxcnt <= SavedState::kSeen) {
    saved->seen_count = snapshot->subxcnt;
    memcpy(saved->seen, snapshot->subxip, sizeof(TransactionId) * saved->seen_count);
  }
  saved->replayed = replayed;
}

// Reads everything that is saved. Other sessions may look on only on a standby.
void load(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters) {
  Header* block = block_of(slot);
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  format_header(block, parameters);
  Relation images = open_state_table(StateTable::image, relation->relid, AccessShareLock);
  Relation log = open_state_table(StateTable::log, relation->relid, AccessShareLock);
  if (images == nullptr || log == nullptr) {
    format_slices(block);
    return;
  }
  MemoryContext context =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter restore", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  Progress progress(psprintf("restoring filter \"%s\"", relation->name));

  restore_prepared(log, slot, relation, &progress);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  const Rows rows = read_log(log, relation->relid, snapshot, &progress,
                             [](TransactionId, HeapTupleHeader) { return true; });
  clear_slices(block);
  Image image = read_image(images, relation, snapshot, block, &progress);

  // The newest header tells the seed; of a definition that is gone, nothing is used.
  bool found = false;
  int64 identity = 0;
  for (uint64 i = rows.count; i > 0 && !found; --i) {
    const LogRow& row = rows.rows[i - 1];
    Parameters saved;
    if (row.change != LogChange::header ||
        !take_parameters(row.data, relation, parameters, row.identity, &saved))
      continue;
    found = true;
    identity = row.identity;
    block->parameters = saved;
  }
  if (!found && image.found) {
    found = true;
    identity = image.identity;
    block->parameters = image.parameters;
  }
  uint64 from = 0;
  bool use_image = image.found && image.identity == identity && image.damage == nullptr;
  for (uint64 i = rows.count; i > 0; --i)
    if (rows.rows[i - 1].change == LogChange::reset && rows.rows[i - 1].identity == identity) {
      from = i;
      use_image = false;
      image.damage = nullptr;  // it would not be used anyway
      break;
    }
  if (use_image) {
    Problem problem;
    if (!check(block, block->parameters.memory, problem)) {
      use_image = false;
      image.damage = pstrdup(problem.message);
    }
  }
  if (!use_image) format_slices(block);
  if (image.damage != nullptr) warn_damaged(relation, "image", image.damage);
  if (rows.damaged > 0)
    warn_damaged(relation, "log", psprintf(UINT64_FORMAT " rows cannot be read.", rows.damaged));
  if (found) play_rows(slot, block, rows, from, identity);

  SavedState* saved = &slot->saved;
  saved->last_saved = use_image ? image.saved : 0;
  saved->image = image.saved;
  saved->restored = found ? GetCurrentTimestamp() : 0;
  pg_atomic_write_u32(&saved->has_header, found);
  pg_atomic_write_u64(&saved->log_bytes, rows.bytes);
  pg_atomic_write_u64(&saved->next_number,
                      rows.count == 0 ? 1 : static_cast<uint64>(rows.rows[rows.count - 1].number) + 1);
  saved->follows = standby;
  if (standby) remember_snapshot(slot, snapshot, replayed);
  UnregisterSnapshot(snapshot);
  table_close(log, AccessShareLock);
  table_close(images, AccessShareLock);
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);

  // What is left of other definitions must not come back when one of them does.
  const bool stale = image.stale || (rows.count > 0 && !found);
  if (stale && !standby && !XactReadOnly && !IsInParallelMode()) delete_saved_state(relation->relid);
}

// When was the current image saved? 0: there is none.
TimestampTz image_time(Relation table, Oid filter, Snapshot snapshot) {
  TimestampTz saved = 0;
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection)) {
    ImageRow row;
    if (filter_of(table, tuple) != filter || !read_row(table, tuple, &row)) continue;
    saved = row.saved;
    break;
  }
  table_endscan(scan);
  return saved;
}

// Plays what has become visible since `seen`. False: everything must be read again.
bool play_news(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  if (saved->seen_count < 0) return false;
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  if (standby && replayed == saved->replayed) return true;
  Relation images = open_state_table(StateTable::image, relation->relid, AccessShareLock);
  Relation log = open_state_table(StateTable::log, relation->relid, AccessShareLock);
  if (images == nullptr || log == nullptr) return true;
  SnapshotData seen{};
  seen.snapshot_type = SNAPSHOT_MVCC;
  seen.xmin = saved->seen_xmin;
  seen.xmax = saved->seen_xmax;
  seen.subxip = saved->seen;
  seen.subxcnt = saved->seen_count;
  seen.takenDuringRecovery = true;
  Progress progress(psprintf("following filter \"%s\"", relation->name));
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  const bool same_image = image_time(images, relation->relid, snapshot) == saved->image;
  if (same_image) {
    const Rows rows = read_log(log, relation->relid, snapshot, &progress,
                               [&](TransactionId xmin, HeapTupleHeader tuple) {
                                 return !HeapTupleHeaderXminFrozen(tuple) &&
                                        XidInMVCCSnapshot(xmin, &seen);
                               });
    Header* block = block_of(slot);
    play_rows(slot, block, rows, 0, identity_of(relation->signature, block->parameters.seed));
    if (rows.count > 0)
      pg_atomic_write_u64(&saved->next_number,
                          Max(pg_atomic_read_u64(&saved->next_number),
                              static_cast<uint64>(rows.rows[rows.count - 1].number) + 1));
    remember_snapshot(slot, snapshot, replayed);
  }
  UnregisterSnapshot(snapshot);
  table_close(log, AccessShareLock);
  table_close(images, AccessShareLock);
  // Before there was a header to be found, the seed was not known.
  return same_image && pg_atomic_read_u32(&saved->has_header) != 0;
}

}  // namespace

void restore_filter(FilterSlot* slot, const FilterRelation* relation,
                    const Parameters& parameters) {
  if (relation->host.persistence == Persistence::logged) return load(slot, relation, parameters);
  Header* block = block_of(slot);
  format_header(block, parameters);
  format_slices(block);
}

void follow_log(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  // One at a time; the others wait until the filter is as new as they need it.
  ConditionVariablePrepareToSleep(&shared_state->built);
  for (;;) {
    uint32 idle = 0;
    if (pg_atomic_compare_exchange_u32(&saved->following, &idle, 1)) break;
    ConditionVariableSleep(&shared_state->built, PG_WAIT_EXTENSION);
  }
  ConditionVariableCancelSleep();
  PG_TRY();
  {
    const bool promoted = !RecoveryInProgress();
    if (saved->follows) {
      if (!play_news(slot, relation)) load(slot, relation, block_of(slot)->parameters);
      if (promoted) saved->follows = false;
    }
  }
  PG_FINALLY();
  {
    pg_atomic_write_u32(&saved->following, 0);
    ConditionVariableBroadcast(&shared_state->built);
  }
  PG_END_TRY();
}

}  // namespace streamfilter::pg
