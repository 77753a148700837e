#include "pg/server/postgres.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/twophase.h"
#include "access/xlog.h"
#include "catalog/pg_operator_d.h"
#include "executor/tuptable.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"
}

#include "pg/server/citus.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/storage/state_reader.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

void keep_log_row(LogRows* rows, const LogRow& row) {
  if (rows->count == rows->places) {
    rows->places = Max(rows->places * 2, uint64{256});
    const Size bytes = sizeof(LogRow) * rows->places;
    rows->rows = static_cast<LogRow*>(rows->rows == nullptr
                                          ? MemoryContextAllocHuge(CurrentMemoryContext, bytes)
                                          : repalloc_huge(rows->rows, bytes));
  }
  LogRow* kept = &rows->rows[rows->count++];
  *kept = row;
  auto* data = static_cast<char*>(palloc(row.size + 1));
  memcpy(data, row.data, row.size);
  kept->data = data;
}

bool brings_no_keys(ChangeType change) {
  return is_header(change) || change == ChangeType::reset || change == ChangeType::collations;
}

// Is the row news? A standby's look wants those, and all headers: are they still there?
bool is_read(StateReading* reading, HeapTupleHeader tuple) {
  if (reading->seen == nullptr) return true;
  const TransactionId xid = HeapTupleHeaderGetRawXmin(tuple);
  if (!TransactionIdIsNormal(xid) || !is_news(*reading->seen, xid)) return false;
  // Frozen since then, or long ago.
  reading->unsure |= HeapTupleHeaderXminFrozen(tuple);
  return true;
}

// True if this database has a prepared transaction. An ended one's place keeps its id.
bool is_any_prepared() {
  for (int i = 0; i < max_prepared_xacts; ++i) {
    const PGPROC& place = PreparedXactProcs[i];
    if (place.databaseId == MyDatabaseId && TransactionIdIsInProgress(place.xid)) return true;
  }
  return false;
}

}  // namespace

// Mostly there is none, and nothing is read.
void read_prepared(StateReading* reading) {
  if (RecoveryInProgress() || !is_any_prepared()) return;
  Relation log = reading->tables.log;
  reading->progress->begin("reading prepared transactions", 0, "rows");
  StateScan scan(log, reading->relation->relid, SnapshotAny);
  while (HeapTuple tuple = scan.next()) {
    reading->progress->add(1);
    const TransactionId xid = HeapTupleHeaderGetXmin(tuple->t_data);
    LogRow row;
    if (!TransactionIdIsNormal(xid) || TransactionIdIsCurrentTransactionId(xid) ||
        !TransactionIdIsInProgress(xid) || !read_state_row(log, tuple, &row) || !is_sound(row))
      continue;
    reading->next_number = Max(reading->next_number, static_cast<uint64>(row.number) + 1);
    reading->has_prepared = true;
    if (is_header(row.change)) keep_log_row(&reading->prepared, row);
    if (row.change != ChangeType::add && row.change != ChangeType::roles) continue;
    const uint64 count = count_changes(row);
    for (uint64 i = 0; i < count; ++i)
      if (!put_back_in_flight(reading->slot, xid, logged_change_at(row, i).element)) {
        ereport(
            WARNING, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
            errmsg("keys of prepared transaction %u do not fit among those in flight", xid),
            errhint("Raise streamfilter.max_in_flight or streamfilter.dynamic_memory, and restart "
                    "the server."));
        break;
      }
  }
  scan.end();
}

void read_log(StateReading* reading) {
  Relation table = reading->tables.log;
  reading->progress->begin("reading log", 0, "rows");
  StateScan scan(table, reading->relation->relid, reading->snapshot);
  while (HeapTuple tuple = scan.next()) {
    reading->progress->add(1);
    const bool news = is_read(reading, tuple->t_data);
    LogRow row;
    if (!news && !is_header(change_in(table, tuple))) continue;
    if (!read_state_row(table, tuple, &row) || !is_sound(row)) {
      ++reading->log.damaged;
      continue;
    }
    if (!news) {
      keep_log_row(&reading->log, row);
      continue;
    }
    if (reading->sort != nullptr) reading->sort->put(tuple);
    if (brings_no_keys(row.change)) keep_log_row(&reading->log, row);
    ++reading->log.all;
    reading->log.bytes += tuple->t_len;
    reading->last_page = ItemPointerGetBlockNumber(&tuple->t_self) + 1;
    reading->next_number = Max(reading->next_number, static_cast<uint64>(row.number) + 1);
  }
  scan.end();
}

namespace {

void end_run(ChunkRun* run) {
  if (run->size > 0 && !fill_memory(run->place, run->bytes, run->size))
    memcpy(run->place, run->bytes, run->size);
  run->size = 0;
}

void add_to_run(ChunkRun* run, char* place, const ImageRow& row) {
  constexpr Size kLongest = 16 * kRowData;
  if (run->bytes == nullptr) run->bytes = static_cast<char*>(palloc(kLongest));
  if (run->place + run->size != place || run->size + row.size > kLongest) end_run(run);
  if (run->size == 0) run->place = place;
  memcpy(run->bytes + run->size, row.data, row.size);
  run->size += row.size;
}

// An image's bytes are what was written, says the sum of each chunk.
const char* place_chunk(StateReading* reading, const ImageRow& row) {
  char* place;
  if (const char* damage = place_of_chunk(row, reading->block, &place)) return damage;
  if (reading->is_fresh)
    add_to_run(&reading->run, place, row);
  else
    memcpy(place, row.data, row.size);
  count_work(Work::bytes, row.size);
  return nullptr;
}

const char* take_image_header(const StateReading& reading, const ImageRow& row, SavedImage* image) {
  if (row.size != sizeof(Header)) return "Its header has another size.";
  image->chunks = row.chunks;
  reading.progress->begin("reading image", static_cast<uint64>(Max(row.chunks, 0)), "rows");
  image->refused = take_parameters(row.data, reading.relation, 0, &image->parameters);
  image->found = image->refused == nullptr;
  return nullptr;
}

void take_image_row(StateReading* reading, const ImageRow& row) {
  SavedImage* image = &reading->image;
  if (reading->life != 0 && row.image != reading->life) return;
  if (++image->read > 1 && row.saved != image->saved)
    image->damage = "Chunks of several images are mixed.";
  image->saved = row.saved;
  image->identity = row.image;
  image->placed |= row.number > 0;
  const char* damage =
      row.number > 0 ? place_chunk(reading, row) : take_image_header(*reading, row, image);
  if (damage != nullptr) image->damage = damage;
}

}  // namespace

void read_image(StateReading* reading) {
  Relation table = reading->tables.images;
  SavedImage* image = &reading->image;
  if (reading->chunks == nullptr) reading->progress->begin("reading image", 0, "rows");
  reading->run.size = 0;
  StateScan scan(table, reading->relation->relid, reading->snapshot, reading->chunks);
  while (HeapTuple tuple = scan.next()) {
    reading->progress->add(1);
    ImageRow row;
    if (!read_state_row(table, tuple, &row) || row.number < 0 || row.sum != sum_of(row))
      image->damage = "A chunk is not what was written.";
    else
      take_image_row(reading, row);
  }
  scan.end();
  end_run(&reading->run);
  // That the chunks of another definition do not fit this one is no damage.
  if (image->refused != nullptr) image->damage = nullptr;
}

const char* damage_of_whole(const SavedImage& image) {
  return image.damage != nullptr || image.refused != nullptr || image.read == image.chunks
             ? image.damage
             : "Chunks are missing.";
}

namespace {

SavedHeader header_in(const LogRow& row) {
  SavedHeader saved;
  memcpy(static_cast<void*>(&saved), row.data, sizeof saved);
  return saved;
}

bool is_damage(int sqlstate) {
  return sqlstate == ERRCODE_DATA_CORRUPTED || sqlstate == ERRCODE_INTERNAL_ERROR ||
         ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_SYSTEM_ERROR;
}

void sort_rows(StateReading* reading) {
  const LogRows& log = reading->log;
  std::sort(log.rows, log.rows + log.count,
            [](const LogRow& a, const LogRow& b) { return a.number < b.number; });
  if (const LogRow* row = newest_header(log)) reading->former = header_in(*row).former;
}

}  // namespace

const char* try_to_read(void (*read)(StateReading*), StateReading* reading) {
  // Citus would send a savepoint to other nodes, perhaps in the middle of a COPY.
  if (IsInParallelMode() || distributed_transaction() != 0) {
    read(reading);
    sort_rows(reading);
    return nullptr;
  }
  ErrorData* error = error_in_savepoint([&] { read(reading); });
  if (error != nullptr && !is_damage(error->sqlerrcode)) ReThrowError(error);
  sort_rows(reading);
  return error != nullptr ? error->message : nullptr;
}

const LogRow* newest_header(const LogRows& log) {
  for (uint64 i = log.count; i > 0; --i)
    if (is_header(log.rows[i - 1].change)) return &log.rows[i - 1];
  return nullptr;
}

const char* take_parameters(const LogRow* row, const FilterRelation* relation, Parameters* result) {
  return take_parameters(row->data, relation, header_in(*row).columns, result);
}

namespace {

void replay_row(FilterSlot* slot, Header* block, const LogRow& row) {
  if (row.change == ChangeType::reset) return format_all_slices(slot, block);
  const uint64 count = count_changes(row);
  for (uint64 i = 0; i < count; ++i) replay_change(slot, block, logged_change_at(row, i));
}

}  // namespace

bool begin_reading(StateReading* reading, FilterSlot* slot, const FilterRelation* relation,
                   const char* what, bool sorts) {
  if (!open_state_tables(relation->relid, AccessShareLock, AccessShareLock, &reading->tables))
    return false;
  reading->context =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter restore", ALLOCSET_DEFAULT_SIZES);
  reading->caller = MemoryContextSwitchTo(reading->context);
  reading->slot = slot;
  reading->relation = relation;
  const char* title = psprintf("%s filter \"%s\"", what, relation->name);
  reading->progress =
      new (palloc(sizeof(Progress))) Progress(Command::restore, relation->relid, title);
  if (sorts) reading->sort = new (palloc(sizeof(RowSort))) RowSort(reading->tables.log);
  return true;
}

void end_reading(StateReading* reading) {
  if (reading->sort != nullptr) reading->sort->end();
  UnregisterSnapshot(reading->snapshot);
  close_state_tables(reading->tables);
  MemoryContextSwitchTo(reading->caller);
  MemoryContextDelete(reading->context);
}

void replay_change(FilterSlot* slot, Header* block, const LoggedChange& change) {
  const bool promotes = change.change == ChangeType::promote;
  if (!promotes && change.change != ChangeType::erase)
    return insert_new_in_slices(slot, block, change.element);
  if (!promotes && ops_of(block).erase == nullptr) return;
  const LockHeld held(slice_lock(slot, slice_of(block->parameters, change.element.hash)),
                      LW_EXCLUSIVE);
  unsigned rank;
  promotes ? promote(block, change.element, rank) : erase(block, change.element);
}

void replay_rows(const StateReading& reading, Header* block, int64 from, int64 identity) {
  reading.progress->begin("replaying log", reading.log.all, "rows");
  LogRow row;
  while (reading.sort->next(&row)) {
    reading.progress->advance(1);
    if (row.number >= from && is_of_life(reading, row, identity) && !is_header(row.change))
      replay_row(reading.slot, block, row);
  }
}

void warn_damaged(FilterSlot* slot, const FilterRelation* relation, const char* what,
                  const char* detail) {
  char* state = slot->set_aside;
  if (state[0] == '\0') snprintf(state, sizeof slot->set_aside, "damaged %s: %s", what, detail);
  ereport(WARNING, errcode(ERRCODE_DATA_CORRUPTED),
          errmsg("the saved %s of filter \"%s\" is damaged", what, relation->name),
          errdetail("%s", detail),
          errhint("The filter goes on without it, so repeats of older keys are not recognised."));
}

// ---- sorting ------------------------------------------------------------------------------------

// No limit of the user may keep a filter from being restored.
RowSort::RowSort(Relation table)
    : table_(table), owner_(CurrentResourceOwner), settings_(NewGUCNestLevel()) {
  set_config_option("temp_file_limit", "-1", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                    false);
  TupleDesc columns = RelationGetDescr(table);
  AttrNumber number = kNumberColumn;
  Oid less = Int8LessOperator, collation = InvalidOid;
  bool nulls_first = false;
  sort_ = tuplesort_begin_heap(columns, 1, &number, &less, &collation, &nulls_first,
                               maintenance_work_mem, nullptr, TUPLESORT_NONE);
  put_slot_ = MakeSingleTupleTableSlot(columns, &TTSOpsHeapTuple);
  next_slot_ = MakeSingleTupleTableSlot(columns, &TTSOpsMinimalTuple);
}

// A temporary file belongs to the resource owner that is current at its creation.
void RowSort::put(HeapTuple tuple) {
  ResourceOwner caller = CurrentResourceOwner;
  CurrentResourceOwner = owner_;
  ExecStoreHeapTuple(tuple, put_slot_, false);
  tuplesort_puttupleslot(sort_, put_slot_);
  ExecClearTuple(put_slot_);
  CurrentResourceOwner = caller;
}

bool RowSort::next(LogRow* row) {
  if (copy_ != nullptr) heap_freetuple(copy_);
  copy_ = nullptr;
  if (!sorted_) tuplesort_performsort(sort_);
  sorted_ = true;
  if (!tuplesort_gettupleslot(sort_, true, false, next_slot_, nullptr)) return false;
  copy_ = ExecCopySlotHeapTuple(next_slot_);
  return read_state_row(table_, copy_, row);  // it was read before
}

void RowSort::end() {
  if (copy_ != nullptr) heap_freetuple(copy_);
  ExecDropSingleTupleTableSlot(put_slot_);
  ExecDropSingleTupleTableSlot(next_slot_);
  tuplesort_end(sort_);
  AtEOXact_GUC(true, settings_);
}

// ---- the last look of a standby -----------------------------------------------------------------

namespace {

bool comes_before(TransactionId one, TransactionId other) {
  return TransactionIdPrecedes(one, other);
}

// Stores ascending ids. If older ones make too many ranges, count stays -1.
void remember(const TransactionId* ids, uint32 count, RunningXids* ran) {
  uint32 made = 0;
  memset(ran->latest, 0, sizeof ran->latest);
  for (uint32 i = 0; i < count; ++i) {
    const uint32 age = ran->xmax - 1 - ids[i];
    if (age < RunningXids::kLatest) {
      ran->latest[age / 64] |= uint64{1} << age % 64;
      continue;
    }
    TransactionId next = InvalidTransactionId;
    if (made > 0) {
      next = ran->ranges[made - 1].last;
      TransactionIdAdvance(next);
    }
    if (made > 0 && next == ids[i]) {
      ran->ranges[made - 1].last = ids[i];
      continue;
    }
    if (made == RunningXids::kRanges) return;
    ran->ranges[made++] = {ids[i], ids[i]};
  }
  ran->count = static_cast<int>(made);
}

}  // namespace

// An overflowed snapshot lacks subtransactions. None of them has written to the log: a transaction
// does so at commit, under its own id, which is never left out.
void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed) {
  RunningXids* ran = running_xids(slot);
  if (ran == nullptr) return;
  ran->xmin = snapshot->xmin;
  ran->xmax = snapshot->xmax;
  ran->count = -1;
  if (snapshot->takenDuringRecovery) {
    const Size bytes = sizeof(TransactionId) * static_cast<Size>(snapshot->subxcnt);
    auto* ids = static_cast<TransactionId*>(palloc(bytes + 1));
    memcpy(ids, snapshot->subxip, bytes);
    std::sort(ids, ids + snapshot->subxcnt, comes_before);
    remember(ids, static_cast<uint32>(snapshot->subxcnt), ran);
    pfree(ids);
  }
  slot->standby.replayed = replayed;
}

bool is_news(const RunningXids& ran, TransactionId xid) {
  if (comes_before(xid, ran.xmin)) return false;
  if (!comes_before(xid, ran.xmax)) return true;
  const uint32 age = ran.xmax - 1 - xid;
  if (age < RunningXids::kLatest) return ran.latest[age / 64] >> age % 64 & 1;
  const RunningXids::Range* end = ran.ranges + ran.count;
  const RunningXids::Range* range = std::partition_point(
      ran.ranges, end, [xid](const auto& each) { return comes_before(each.last, xid); });
  return range != end && !comes_before(xid, range->first);
}

}  // namespace streamfilter::pg
