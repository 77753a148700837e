#include "pg/server/postgres.hpp"

extern "C" {
#include "access/twophase.h"
#include "catalog/pg_operator_d.h"
#include "utils/tuplesort.h"
}

#include "pg/server/citus.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/storage/saved_definition.hpp"
#include "pg/storage/state_reader.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

void keep_newest(LogRow* kept, const LogRow& row) {
  if (kept->filter != 0 && kept->number > row.number) return;
  *kept = row;
  auto* data = static_cast<char*>(palloc(row.size + 1));
  memcpy(data, row.data, row.size);
  kept->data = data;
}

SavedHeader header_in(const LogRow& row) {
  SavedHeader saved;
  memcpy(&saved, row.data, sizeof saved);
  return saved;
}

// The first gap that does not end before the number.
PlayedRows::Gap* gap_at(PlayedRows* played, int64 number) {
  return std::partition_point(played->gaps, played->gaps + played->count,
                              [number](const auto& gap) { return gap.last < number; });
}

bool is_news(PlayedRows* played, int64 number) {
  if (number >= played->next) return true;
  const PlayedRows::Gap* gap = gap_at(played, number);
  return gap != played->gaps + played->count && gap->first <= number;
}

// Call in the order of numbers. With too many gaps, all must be read again.
void note_played(PlayedRows* played, int64 number) {
  if (played->next == 0 || !is_news(played, number)) return;
  const bool is_last = number >= played->next;
  PlayedRows::Gap* gap = is_last ? played->gaps + played->count : gap_at(played, number);
  const PlayedRows::Gap parts[] = {{is_last ? played->next : gap->first, number - 1},
                                   {number + 1, is_last ? number : gap->last}};
  if (is_last) played->next = number + 1;
  if (!is_last) memmove(gap, gap + 1, sizeof *gap * (played->gaps + played->count-- - gap - 1));
  for (const PlayedRows::Gap& part : parts) {
    if (part.first > part.last) continue;
    if (played->count == PlayedRows::kMost) {
      played->next = 0;
      return;
    }
    memmove(gap + 1, gap, sizeof *gap * (played->gaps + played->count++ - gap));
    *gap++ = part;
  }
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
    if (is_header(row.change)) keep_newest(&reading->prepared, row);
    if (reading->slot == nullptr ||
        (row.change != ChangeType::add && row.change != ChangeType::roles))
      continue;
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
    LogRow row;
    if (!read_state_row(table, tuple, &row) || !is_sound(row)) {
      ++reading->log.damaged;
      continue;
    }
    if (is_header(row.change)) {
      keep_newest(&reading->log.header, row);
      reading->former = header_in(reading->log.header).former;
    }
    if (reading->played != nullptr && !is_news(reading->played, row.number)) continue;
    if (row.change == ChangeType::reset) keep_newest(&reading->log.reset, row);
    if (reading->sort != nullptr) reading->sort->put(tuple);
    ++reading->log.all;
    reading->log.bytes += tuple->t_len;
    reading->latest = Max(reading->latest, static_cast<uint64>(row.number));
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
  image->chunks = row.chunks;
  reading.progress->begin("reading image", static_cast<uint64>(Max(row.chunks, 0)), "rows");
  const char* refused =
      take_parameters(row.data, row.size, reading.relation, 0, &image->parameters);
  image->found = refused == nullptr;
  return refused;
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
}

const char* damage_of_whole(const SavedImage& image) {
  return image.damage != nullptr || image.read == image.chunks ? image.damage
                                                               : "Chunks are missing.";
}

static bool is_damage(int sqlstate) {
  return sqlstate == ERRCODE_DATA_CORRUPTED || sqlstate == ERRCODE_INTERNAL_ERROR ||
         ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_SYSTEM_ERROR;
}

const char* try_to_read(void (*read)(StateReading*), StateReading* reading) {
  // Citus would send a savepoint to other nodes, perhaps in the middle of a COPY.
  if (IsInParallelMode() || distributed_transaction() != 0) {
    read(reading);
    return nullptr;
  }
  ErrorData* error = error_in_savepoint([&] { read(reading); });
  if (error != nullptr && !is_damage(error->sqlerrcode)) ReThrowError(error);
  return error != nullptr ? error->message : nullptr;
}

const char* take_parameters(const LogRow& row, const FilterRelation* relation, Parameters* result) {
  return take_parameters(row.data + sizeof(SavedHeader), row.size - sizeof(SavedHeader), relation,
                         header_in(row).columns, result);
}

static void replay_row(FilterSlot* slot, Header* block, const LogRow& row) {
  if (row.change == ChangeType::reset) return format_all_slices(slot, block);
  const uint64 count = count_changes(row);
  for (uint64 i = 0; i < count; ++i) replay_change(slot, block, logged_change_at(row, i));
}

bool begin_reading(StateReading* reading, FilterSlot* slot, const FilterRelation* relation,
                   const char* what, bool sorts) {
  if (!open_state_tables(relation->relid, AccessShareLock, &reading->tables)) return false;
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
    if (reading.played != nullptr) note_played(reading.played, row.number);
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

PlayedRows* copy_played(const PlayedRows* from) {
  auto* copy = static_cast<PlayedRows*>(palloc(sizeof(PlayedRows)));
  if (from != nullptr)
    *copy = *from;
  else
    copy->next = 1, copy->count = 0;
  return copy;
}

void keep_played(FilterSlot* slot, const StateReading& reading, XLogRecPtr replayed) {
  if (PlayedRows* kept = played_rows(slot)) *kept = *reading.played;
  slot->standby.replayed = replayed;
}

}  // namespace streamfilter::pg
