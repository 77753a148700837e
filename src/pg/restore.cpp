#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "access/twophase.h"
#include "access/xlogrecovery.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "utils/resowner.h"
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

// Adds the filter's rows of the log for which wanted(tuple) holds, in the order of their numbers.
template <typename Wanted>
void read_log(Relation table, Oid filter, Snapshot snapshot, Progress* progress, Wanted&& wanted,
              Rows* rows) {
  StateScan scan(table, filter, snapshot);
  while (HeapTuple tuple = scan.next()) {
    progress->add(1);
    if (!wanted(tuple->t_data)) continue;
    LogRow row;
    if (read_row(table, tuple, &row) && is_sound(row))
      keep_row(rows, row);
    else
      ++rows->damaged;
  }
  scan.end();
  sort_rows(rows);
}

uint64 next_number(const Rows& rows) {
  return rows.count == 0 ? 1 : static_cast<uint64>(rows.rows[rows.count - 1].number) + 1;
}

// Calls read(arg); an error that damaged bytes may lead to becomes the result, nullptr is good. It
// takes a subtransaction, which a parallel query does not allow: there errors remain errors.
pg_noinline const char* try_to_read(void (*read)(void*), void* arg) {
  if (IsInParallelMode()) {
    read(arg);
    return nullptr;
  }
  MemoryContext context = CurrentMemoryContext;
  ResourceOwner owner = CurrentResourceOwner;
  const char* volatile damage = nullptr;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(context);
  PG_TRY();
  {
    read(arg);
    ReleaseCurrentSubTransaction();
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
    const int category = ERRCODE_TO_CATEGORY(error->sqlerrcode);
    if (error->sqlerrcode != ERRCODE_DATA_CORRUPTED && error->sqlerrcode != ERRCODE_INTERNAL_ERROR &&
        category != ERRCODE_SYSTEM_ERROR)
      ReThrowError(error);
    damage = error->message;
  }
  PG_END_TRY();
  MemoryContextSwitchTo(context);
  CurrentResourceOwner = owner;
  return damage;
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

bool is_known_format(const char* bytes) {
  Header header;
  memcpy(static_cast<void*>(&header), bytes, sizeof header);
  return header.magic == kMagic && header.version == kFormatVersion;
}

// What read_image has found, besides the slices of the block.
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

void read_image(Relation table, const FilterRelation* relation, Snapshot snapshot, Header* block,
                Progress* progress, Image* image) {
  int32 rows = 0, chunks = -1;
  StateScan scan(table, relation->relid, snapshot);
  while (HeapTuple tuple = scan.next()) {
    progress->add(1);
    ImageRow row;
    if (!read_row(table, tuple, &row) || row.number < 0 || row.sum != sum_of(row)) {
      image->damage = "A chunk is not what was written.";
      continue;
    }
    ++rows;
    if (rows > 1 && row.saved != image->saved) image->damage = "Chunks of several images are mixed.";
    image->saved = row.saved;
    image->identity = row.image;
    const char* damage = nullptr;
    if (row.number > 0) {
      damage = place_chunk(row, block);
    } else if (row.size != sizeof(Header) || !is_known_format(row.data)) {
      damage = "Its format is not known to this version.";
    } else {
      chunks = row.chunks;
      image->found =
          take_parameters(row.data, relation, block->parameters, row.image, &image->parameters);
      image->stale = !image->found;
    }
    if (damage != nullptr) image->damage = damage;
  }
  scan.end();
  if (rows > 0 && chunks != rows && image->damage == nullptr) image->damage = "Chunks are missing.";
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
    if (row.identity != identity || is_header(row.change)) continue;
    if (row.change == LogChange::reset) {
      for (uint32 j = 0; j < block->parameters.slices; ++j) {
        LWLock* lock = slice_lock(slot, j);
        LWLockAcquire(lock, LW_EXCLUSIVE);
        format_slice(block, j);
        LWLockRelease(lock);
      }
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

// Puts keys of transactions that were prepared before the server started back in flight. Nobody
// else can have written to this filter's log and not have ended: its state is only being built, or
// was only read so far. Returns the number that follows theirs.
uint64 restore_prepared(Relation log, FilterSlot* slot, const FilterRelation* relation,
                        Progress* progress) {
  uint64 next = 1;
  if (max_prepared_xacts == 0 || RecoveryInProgress()) return next;
  StateScan scan(log, relation->relid, SnapshotAny);
  while (HeapTuple tuple = scan.next()) {
    progress->add(1);
    const TransactionId xid = HeapTupleHeaderGetXmin(tuple->t_data);
    LogRow row;
    if (!TransactionIdIsNormal(xid) || TransactionIdIsCurrentTransactionId(xid) ||
        !TransactionIdIsInProgress(xid) || !read_row(log, tuple, &row) || !is_sound(row))
      continue;
    next = Max(next, static_cast<uint64>(row.number) + 1);
    if (row.change != LogChange::add && row.change != LogChange::roles) continue;
    const uint64 count = count_changes(row);
    for (uint64 i = 0; i < count; ++i)
      if (!put_back_in_flight(slot, xid, change_at(row, i).element)) {
        ereport(WARNING, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                errmsg("keys of prepared transaction %u do not fit among those in flight", xid),
                errhint("Raise streamfilter.max_in_flight and restart the server."));
        break;
      }
  }
  scan.end();
  return next;
}

// What one look at the heaps reads, for try_to_read.
struct Reading {
  StateTables tables;
  FilterSlot* slot;
  const FilterRelation* relation;
  Header* block;
  Snapshot snapshot;
  Progress* progress;
  uint64 next_number;
  Rows rows;
  Image image;
};

void read_prepared(void* arg) {
  auto* reading = static_cast<Reading*>(arg);
  reading->next_number = restore_prepared(reading->tables.log, reading->slot, reading->relation,
                                          reading->progress);
}

void read_whole_log(void* arg) {
  auto* reading = static_cast<Reading*>(arg);
  read_log(reading->tables.log, reading->relation->relid, reading->snapshot, reading->progress,
           [](HeapTupleHeader) { return true; }, &reading->rows);
}

void read_whole_image(void* arg) {
  auto* reading = static_cast<Reading*>(arg);
  read_image(reading->tables.images, reading->relation, reading->snapshot, reading->block,
             reading->progress, &reading->image);
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

// Reads everything that is saved into `block`: that of a slot that is being built, or a copy.
void load(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters,
          Header* block) {
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  format_header(block, parameters);
  Reading reading{};
  if (!open_state_tables(relation->relid, AccessShareLock, AccessShareLock, &reading.tables)) {
    format_slices(block);
    return;
  }
  MemoryContext context =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter restore", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(context);
  Progress progress(psprintf("restoring filter \"%s\"", relation->name));
  reading.slot = slot;
  reading.relation = relation;
  reading.block = block;
  reading.progress = &progress;

  // Before the snapshot: whoever commits in between is in both.
  const char* damage = try_to_read(read_prepared, &reading);
  reading.snapshot = register_latest_snapshot();
  if (const char* more = try_to_read(read_whole_log, &reading)) {
    damage = more;
    sort_rows(&reading.rows);  // those before the damage
  }
  clear_slices(block);
  if (const char* more = try_to_read(read_whole_image, &reading)) reading.image.damage = more;
  const Rows& rows = reading.rows;
  Image& image = reading.image;
  if (rows.damaged > 0 && damage == nullptr)
    damage = psprintf(UINT64_FORMAT " rows cannot be read.", rows.damaged);

  // The newest header tells the seed; of a definition that is gone, nothing is used.
  bool found = false;
  int64 identity = 0;
  for (uint64 i = rows.count; i > 0 && !found; --i) {
    const LogRow& row = rows.rows[i - 1];
    Parameters saved;
    if (!is_header(row.change) ||
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
  bool stale = image.stale;
  if (image.found && image.identity != identity) {
    image.damage = "It belongs to another filter.";
    stale = true;
  }
  uint64 from = 0;
  bool use_image = image.found && image.identity == identity && image.damage == nullptr;
  for (uint64 i = 0; i < rows.count; ++i) {
    if (rows.rows[i].identity != identity) continue;
    if (rows.rows[i].change == LogChange::image && !image.found && image.damage == nullptr)
      image.damage = "It is missing.";
    if (rows.rows[i].change != LogChange::reset) continue;
    from = i + 1;
    use_image = false;
    image.damage = nullptr;  // it would not be used anyway
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
  if (damage != nullptr) warn_damaged(relation, "log", damage);
  if (found) play_rows(slot, block, rows, from, identity);

  SavedState* saved = &slot->saved;
  saved->last_saved = use_image ? image.saved : 0;
  saved->image = image.saved;
  saved->restored = found ? GetCurrentTimestamp() : 0;
  pg_atomic_write_u32(&saved->has_header, found);
  pg_atomic_write_u64(&saved->log_bytes, rows.bytes);
  pg_atomic_write_u64(&saved->next_number, Max(reading.next_number, next_number(rows)));
  saved->follows = standby;
  if (standby) remember_snapshot(slot, reading.snapshot, replayed);
  UnregisterSnapshot(reading.snapshot);
  close_state_tables(reading.tables);
  for (uint64 i = 0; i < rows.count && !stale; ++i)
    stale = !found || rows.rows[i].identity != identity;
  MemoryContextSwitchTo(caller);
  MemoryContextDelete(context);

  // What is left of other definitions must not come back when one of them does.
  if (stale && !standby && !XactReadOnly && !IsInParallelMode()) {
    ereport(LOG, errmsg("what was saved of filter \"%s\" for another definition is deleted",
                        relation->name));
    delete_saved_state(relation->relid, found ? &identity : nullptr);
  }
}

// Reads everything again, while others are reading the filter.
void load_again(FilterSlot* slot, const FilterRelation* relation) {
  Header* block = block_of(slot);
  const Parameters& parameters = block->parameters;
  auto* copy = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, parameters.memory, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  load(slot, relation, parameters, copy);
  for (uint32 i = 0; i < parameters.slices; ++i) {
    LWLock* lock = slice_lock(slot, i);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    memcpy(static_cast<void*>(slice_at(block, i).state), slice_at(copy, i).state,
           parameters.slice_bytes);
    LWLockRelease(lock);
  }
  block->parameters.seed = copy->parameters.seed;
  pfree(copy);
}

// When was the current image saved? 0: there is none.
TimestampTz image_time(Relation table, Oid filter, Snapshot snapshot) {
  TimestampTz saved = 0;
  StateScan scan(table, filter, snapshot);
  while (HeapTuple tuple = scan.next()) {
    ImageRow row;
    if (!read_row(table, tuple, &row)) continue;
    saved = row.saved;
    break;
  }
  scan.end();
  return saved;
}

// Plays what has become visible since `seen`. False: everything must be read again.
bool play_news(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  // Before there was a header to be found, the seed was not known.
  if (saved->seen_count < 0 || pg_atomic_read_u32(&saved->has_header) == 0) return false;
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  if (standby && replayed == saved->replayed) return true;
  StateTables tables;
  if (!open_state_tables(relation->relid, AccessShareLock, AccessShareLock, &tables)) return true;
  SnapshotData seen{};
  seen.snapshot_type = SNAPSHOT_MVCC;
  seen.xmin = saved->seen_xmin;
  seen.xmax = saved->seen_xmax;
  seen.subxip = saved->seen;
  seen.subxcnt = saved->seen_count;
  seen.takenDuringRecovery = true;
  Progress progress(psprintf("following filter \"%s\"", relation->name));
  const uint64 after_prepared = restore_prepared(tables.log, slot, relation, &progress);
  Snapshot snapshot = register_latest_snapshot();
  bool complete = image_time(tables.images, relation->relid, snapshot) == saved->image;
  if (complete) {
    Rows rows;
    read_log(tables.log, relation->relid, snapshot, &progress,
             [&](HeapTupleHeader tuple) {
               const TransactionId xid = HeapTupleHeaderGetRawXmin(tuple);
               if (!TransactionIdIsNormal(xid) || !XidInMVCCSnapshot(xid, &seen)) return false;
               // Frozen since then, or ages ago.
               if (HeapTupleHeaderXminFrozen(tuple)) complete = false;
               return true;
             },
             &rows);
    Header* block = block_of(slot);
    if (complete)
      play_rows(slot, block, rows, 0, identity_of(relation->signature, block->parameters.seed));
    pg_atomic_write_u64(&saved->next_number, Max(Max(pg_atomic_read_u64(&saved->next_number),
                                                     after_prepared),
                                                 next_number(rows)));
    remember_snapshot(slot, snapshot, replayed);
  }
  UnregisterSnapshot(snapshot);
  close_state_tables(tables);
  return complete;
}

void stop_following(int, Datum slot) {
  pg_atomic_write_u32(&reinterpret_cast<FilterSlot*>(DatumGetPointer(slot))->saved.following, 0);
  ConditionVariableBroadcast(&shared_state->built);
}

}  // namespace

void restore_filter(FilterSlot* slot, const FilterRelation* relation,
                    const Parameters& parameters) {
  Header* block = block_of(slot);
  if (relation->host.persistence == Persistence::logged)
    return load(slot, relation, parameters, block);
  format_header(block, parameters);
  format_slices(block);
  // It may have been a logged one; what is still saved of that has to go with the first change. On a
  // standby it may become one.
  pg_atomic_write_u32(&slot->saved.has_header, 1);
  slot->saved.follows = RecoveryInProgress();
  slot->saved.seen_count = -1;
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
  // Also when this process is told to end.
  PG_ENSURE_ERROR_CLEANUP(stop_following, PointerGetDatum(slot));
  {
    const bool promoted = !RecoveryInProgress();
    if (saved->follows) {
      const bool logged = relation->host.persistence == Persistence::logged;
      if (logged && !play_news(slot, relation)) load_again(slot, relation);
      if (promoted) saved->follows = false;
    }
  }
  PG_END_ENSURE_ERROR_CLEANUP(stop_following, PointerGetDatum(slot));
  stop_following(0, PointerGetDatum(slot));
}

}  // namespace streamfilter::pg
