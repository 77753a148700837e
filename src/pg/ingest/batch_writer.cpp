#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/nodeModifyTable.h"
}

#include "pg/ingest/batch_writer.hpp"
#include "pg/server/compat_private.hpp"

namespace streamfilter::pg {

// Limits as in COPY: waiting rows and bytes, and partitions that keep buffers.
constexpr int kManyRows = 1000;
constexpr Size kManyBytes = 65535;
constexpr int kMaxRows = kMaxWaitingRows;
// Including rows that were made but not given.
constexpr Size kManyMade = 4 * kManyBytes;
constexpr int kMaxBusyTables = 32;

struct BatchTable {
  BatchWriter* writer;
  ResultRelInfo* target;
  TupleDesc type;           // a copy, because the server counts references to its own
  BulkInsertState bulk;     // nullptr: the table is not busy
  TupleTableSlot** rows;    // waiting ones; room for kMaxRows
  uint64* numbers;          // of the waiting rows
  bool has_big;             // one of them would fit on a page only with parts elsewhere
  TupleTableSlot** unused;  // free slots
  int row_count, unused_count, unused_room;
  bool checks_rows;  // or computes columns of them
  bool is_followed;  // by entries of indexes, or by triggers that fire after a row
};

struct WaitingRow {
  BatchTable* table;
  TupleTableSlot* row;
  uint64 number;
};

struct BatchWriter {
  EState* estate;
  WriteMode mode;
  TransitionCaptureState* transition;
  RowWatch watch;
  MemoryContext memory;  // context of all this, and of slots
  MemoryContext tuples;  // rows that wait, or may be about to
  List* tables;
  List* busy;           // busy ones, the one that became busy first in front
  WaitingRow* waiting;  // of all tables, as they came
  int count;
  int written, returned;  // of these: the first ones; they stay here only to be returned
  Size bytes;             // of waiting rows
  Size made;              // of all rows made
  uint64 batches;
};

namespace {

BulkInsertState make_bulk_state(WriteMode mode) {
  BulkInsertState bulk = GetBulkInsertState();
  if (mode.spares_cache) return bulk;
  FreeAccessStrategy(bulk->strategy);
  bulk->strategy = nullptr;
  return bulk;
}

void make_busy(BatchTable* table) {
  BatchWriter* writer = table->writer;
  const InContext context(writer->memory);
  table->bulk = make_bulk_state(writer->mode);
  table->rows = static_cast<TupleTableSlot**>(palloc(sizeof(TupleTableSlot*) * kMaxRows));
  table->numbers = static_cast<uint64*>(palloc(sizeof(uint64) * kMaxRows));
  writer->busy = lappend(writer->busy, table);
}

void make_idle(BatchTable* table) {
  for (int i = 0; i < table->unused_count; ++i) ExecDropSingleTupleTableSlot(table->unused[i]);
  table->unused_count = 0;
  if (table->bulk == nullptr) return;
  FreeBulkInsertState(table->bulk);
  table_finish_bulk_insert(table->target->ri_RelationDesc, table->writer->mode.options);
  pfree(table->rows);
  pfree(table->numbers);
  table->bulk = nullptr;
  table->rows = nullptr;
}

void trim_busy(BatchWriter* writer) {
  while (list_length(writer->busy) > kMaxBusyTables) {
    make_idle(static_cast<BatchTable*>(linitial(writer->busy)));
    writer->busy = list_delete_first(writer->busy);
  }
}

// ---- one row -----------------------------------------------------------------------------------

bool checks_rows(const ResultRelInfo* target) {
  const RelationData* table = target->ri_RelationDesc;
  return table->rd_att->constr != nullptr || table->rd_rel->relispartition;
}

bool fires_before(const ResultRelInfo* target) {
  return target->ri_TrigDesc != nullptr && target->ri_TrigDesc->trig_insert_before_row;
}

// Routing has checked the partition's constraint, unless the row has changed since.
void complete_and_check(EState* estate, ResultRelInfo* target, TupleTableSlot* row, bool changed) {
  Relation table = target->ri_RelationDesc;
  const TupleConstr* constraints = RelationGetDescr(table)->constr;
  row->tts_tableOid = RelationGetRelid(table);
  if (constraints != nullptr) {
    if (constraints->has_generated_stored)
      ExecComputeStoredGenerated(target, estate, row, CMD_INSERT);
    ExecConstraints(target, row, estate);
  }
  if (table->rd_rel->relispartition && (changed || target->ri_RootResultRelInfo == nullptr))
    ExecPartitionCheck(target, row, estate, true);
}

// Our tuple, or one that the slot has made: generated columns do that.
HeapTuple tuple_of(TupleTableSlot* row) {
  HeapTuple tuple = reinterpret_cast<HeapTupleTableSlot*>(row)->tuple;
  return likely(tuple != nullptr) ? tuple : ExecFetchSlotHeapTuple(row, true, nullptr);
}

void open_indexes(const BatchWriter* writer, ResultRelInfo* target) {
  if (target->ri_RelationDesc->rd_rel->relhasindex && target->ri_IndexRelationDescs == nullptr)
    ExecOpenIndices(target, writer->mode.skips_conflicts);
}

void follow_row(const BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row) {
  EState* estate = writer->estate;
  List* recheck = target->ri_NumIndices > 0 ? SF_INSERT_INDEX_TUPLES(target, row, estate) : NIL;
  ExecARInsertTriggers(estate, target, row, recheck, writer->transition);
  list_free(recheck);
}

TupleTableSlot* insert_foreign(EState* estate, ResultRelInfo* target, TupleTableSlot* row) {
  const TupleConstr* constraints = RelationGetDescr(target->ri_RelationDesc)->constr;
  row->tts_tableOid = RelationGetRelid(target->ri_RelationDesc);
  if (constraints != nullptr && constraints->has_generated_stored)
    ExecComputeStoredGenerated(target, estate, row, CMD_INSERT);
  row = target->ri_FdwRoutine->ExecForeignInsert(estate, target, row, row);
  if (row != nullptr) row->tts_tableOid = RelationGetRelid(target->ri_RelationDesc);
  return row;
}

// Inserts the row and its index entries; false if an index has the row meanwhile.
bool insert_tentatively(const BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row,
                        List** recheck) {
  const TransactionId own = GetCurrentTransactionId();
  const uint32 token = SpeculativeInsertionLockAcquire(own);
  table_tuple_insert_speculative(target->ri_RelationDesc, row, writer->estate->es_output_cid,
                                 writer->mode.options, nullptr, token);
  bool conflict = false;
  *recheck = SF_INSERT_INDEX_TUPLES_UNLESS(target, row, writer->estate, &conflict,
                                           target->ri_onConflictArbiterIndexes);
  table_tuple_complete_speculative(target->ri_RelationDesc, row, token, !conflict);
  SpeculativeInsertionLockRelease(own);
  return !conflict;
}

// Like PostgreSQL's ON CONFLICT DO NOTHING.
bool insert_unless_conflict(const BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row) {
  EState* estate = writer->estate;
  List* recheck;
  do {
    CHECK_FOR_INTERRUPTS();
    ItemPointerData found, none;
    ItemPointerSetInvalid(&none);
    if (!SF_HAS_NO_CONFLICT(target, row, estate, &found, &none,
                            target->ri_onConflictArbiterIndexes))
      return false;
  } while (!insert_tentatively(writer, target, row, &recheck));
  ExecARInsertTriggers(estate, target, row, recheck, writer->transition);
  list_free(recheck);
  return true;
}

// For a row whose triggers have fired.
bool insert_into_table(const BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row) {
  if (writer->mode.skips_conflicts && target->ri_NumIndices > 0)
    return insert_unless_conflict(writer, target, row);
  table_tuple_insert(target->ri_RelationDesc, row, writer->estate->es_output_cid,
                     writer->mode.options, nullptr);
  follow_row(writer, target, row);
  return true;
}

bool insert_alone(const BatchWriter* writer, ResultRelInfo* target, TupleTableSlot* row) {
  EState* estate = writer->estate;
  const bool before = fires_before(target);
  ExecMaterializeSlot(row);
  if (before && !ExecBRInsertTriggers(estate, target, row)) return false;
  if (target->ri_FdwRoutine == nullptr) {
    complete_and_check(estate, target, row, before);
    return insert_into_table(writer, target, row);
  }
  row = insert_foreign(estate, target, row);
  if (row == nullptr) return false;
  follow_row(writer, target, row);
  return true;
}

// ---- a batch -----------------------------------------------------------------------------------

void write_some(const BatchTable* table, int first, int end) {
  const BatchWriter* writer = table->writer;
  if (first < end)
    table_multi_insert(table->target->ri_RelationDesc, table->rows + first, end - first,
                       writer->estate->es_output_cid, writer->mode.options, table->bulk);
}

// Rows that may not fit on a page go alone, so that an error concerns them.
void write_rows(BatchTable* table) {
  const BatchWriter* writer = table->writer;
  // An insertion copies tuples that the slot does not own; our waiting ones last as long.
  bool lent[kMaxRows];
  for (int i = 0; i < table->row_count; ++i) {
    lent[i] = !TTS_SHOULDFREE(table->rows[i]);
    table->rows[i]->tts_flags |= TTS_FLAG_SHOULDFREE;
  }
  // Index insertion leaks memory.
  MemoryContext caller = MemoryContextSwitchTo(GetPerTupleMemoryContext(writer->estate));
  int first = 0;
  for (int i = 0; i < table->row_count && table->has_big; ++i) {
    if (ExecFetchSlotHeapTuple(table->rows[i], false, nullptr)->t_len <= MaxHeapTupleSize) continue;
    write_some(table, first, i);
    look_at(writer->watch, table->numbers[i]);
    write_some(table, i, i + 1);
    look_at(writer->watch, 0);
    first = i + 1;
  }
  write_some(table, first, table->row_count);
  MemoryContextSwitchTo(caller);
  // Each holds a page, and a small cache could not hold one of every table.
  if (list_length(writer->busy) > kMaxBusyTables) ReleaseBulkInsertStatePin(table->bulk);
  for (int i = 0; i < table->row_count; ++i)
    if (lent[i]) table->rows[i]->tts_flags &= static_cast<uint16>(~TTS_FLAG_SHOULDFREE);
  table->row_count = 0;
  table->has_big = false;
}

}  // namespace

BatchWriter* begin_batch_writer(EState* estate, WriteMode mode, TransitionCaptureState* transition,
                                RowWatch watch) {
  MemoryContext memory =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter batch", ALLOCSET_DEFAULT_SIZES);
  auto* writer = static_cast<BatchWriter*>(MemoryContextAllocZero(memory, sizeof(BatchWriter)));
  writer->estate = estate;
  writer->mode = mode;
  writer->transition = transition;
  writer->watch = watch;
  writer->memory = memory;
  writer->tuples =
      AllocSetContextCreate(memory, "streamfilter rows of a batch", ALLOCSET_DEFAULT_SIZES);
  writer->waiting =
      static_cast<WaitingRow*>(MemoryContextAlloc(memory, sizeof(WaitingRow) * kMaxRows));
  return writer;
}

BatchTable* add_table(BatchWriter* writer, ResultRelInfo* target) {
  auto* table =
      static_cast<BatchTable*>(MemoryContextAllocZero(writer->memory, sizeof(BatchTable)));
  table->writer = writer;
  table->target = target;
  const InContext context(writer->estate->es_query_cxt);
  open_indexes(writer, target);
  MemoryContextSwitchTo(writer->memory);
  table->type = CreateTupleDescCopyConstr(RelationGetDescr(target->ri_RelationDesc));
  table->checks_rows = checks_rows(target);
  const TriggerDesc* triggers = target->ri_TrigDesc;
  table->is_followed = target->ri_NumIndices > 0 || writer->transition != nullptr ||
                       (triggers != nullptr && triggers->trig_insert_after_row);
  writer->tables = lappend(writer->tables, table);
  return table;
}

TupleTableSlot* take_slot(BatchTable* table) {
  if (table->unused_count > 0) return table->unused[--table->unused_count];
  const InContext context(table->writer->memory);
  return MakeSingleTupleTableSlot(table->type, &TTSOpsHeapTuple);
}

// Memory that the slot does not own may stay until its next row.
void give_back_slot(BatchTable* table, TupleTableSlot* row) {
  if (TTS_SHOULDFREE(row)) ExecClearTuple(row);
  if (table->unused_count == table->unused_room) {
    table->unused_room = Max(2 * table->unused_room, 64);
    const Size size = sizeof(TupleTableSlot*) * static_cast<Size>(table->unused_room);
    table->unused = static_cast<TupleTableSlot**>(
        table->unused == nullptr ? MemoryContextAlloc(table->writer->memory, size)
                                 : repalloc(table->unused, size));
  }
  table->unused[table->unused_count++] = row;
}

// Of a row that went alone. The insertion has made the tuple the slot's own.
static void end_row(BatchTable* table, TupleTableSlot* row, uint64 number, bool inserted) {
  BatchWriter* writer = table->writer;
  look_at(writer->watch, 0);
  ResetPerTupleExprContext(writer->estate);
  if (!inserted || !writer->mode.returns) return give_back_slot(table, row);
  writer->waiting[writer->count++] = {table, row, number};
  writer->written = writer->count;
}

static void drop_written(BatchWriter* writer) {
  MemoryContextReset(writer->tuples);
  writer->count = writer->written = writer->returned = 0;
  writer->bytes = writer->made = 0;
}

bool write_row(BatchTable* table, TupleTableSlot* row, uint64 number, bool at_once) {
  BatchWriter* writer = table->writer;
  if (table->checks_rows) {
    look_at(writer->watch, number);
    complete_and_check(writer->estate, table->target, row, false);
    look_at(writer->watch, 0);
    ResetPerTupleExprContext(writer->estate);
  }
  if (at_once) {
    row->tts_tableOid = RelationGetRelid(table->target->ri_RelationDesc);
    look_at(writer->watch, number);
    const bool inserted = insert_into_table(writer, table->target, row);
    end_row(table, row, number, inserted);
    return inserted;
  }
  if (table->bulk == nullptr) make_busy(table);
  table->numbers[table->row_count] = number;
  table->rows[table->row_count++] = row;
  keep(writer->watch, writer->count, number);
  writer->waiting[writer->count++] = {table, row, number};
  const Size size = tuple_of(row)->t_len;
  writer->bytes += size;
  table->has_big |= size > MaxHeapTupleSize;
  return true;
}

HeapTuple copy_row(BatchWriter* writer, TupleTableSlot* row) {
  MemoryContext caller = MemoryContextSwitchTo(writer->tuples);
  HeapTuple tuple = ExecCopySlotHeapTuple(row);
  MemoryContextSwitchTo(caller);
  writer->made += tuple->t_len;
  return tuple;
}

MemoryContext row_memory(BatchWriter* writer) { return writer->tuples; }

void write_batch(BatchWriter* writer) {
  if (writer->made > 0 && writer->count == 0) drop_written(writer);
  if (writer->count == writer->written) return;
  for (auto* table : each<BatchTable>(writer->busy)) {
    if (table->row_count > 0) write_rows(table);
  }
  for (int i = writer->written; i < writer->count; ++i) {
    const WaitingRow& row = writer->waiting[i];
    if (row.table->is_followed) {
      CHECK_FOR_INTERRUPTS();
      ResetPerTupleExprContext(writer->estate);
      look_at(writer->watch, row.number);
      follow_row(writer, row.table->target, row.row);
    }
    if (!writer->mode.returns) give_back_slot(row.table, row.row);
  }
  look_at(writer->watch, 0);
  writer->written = writer->count;
  if (!writer->mode.returns) drop_written(writer);
  ++writer->batches;
  trim_busy(writer);
}

void write_if_many(BatchWriter* writer) {
  if (writer->count >= kManyRows || writer->bytes > kManyBytes || writer->made > kManyMade)
    write_batch(writer);
}

bool write_alone(BatchTable* table, TupleTableSlot* row, uint64 number) {
  BatchWriter* writer = table->writer;
  write_batch(writer);
  look_at(writer->watch, number);
  const bool inserted = insert_alone(writer, table->target, row);
  end_row(table, row, number, inserted);
  return inserted;
}

TupleTableSlot* next_written(BatchWriter* writer) {
  if (writer->count == 0 || writer->written < writer->count) return nullptr;
  if (writer->returned < writer->count) return writer->waiting[writer->returned++].row;
  for (int i = 0; i < writer->count; ++i)
    give_back_slot(writer->waiting[i].table, writer->waiting[i].row);
  drop_written(writer);
  return nullptr;
}

uint64 finish_batch_writer(BatchWriter* writer) {
  write_batch(writer);
  for (auto* table : each<BatchTable>(writer->tables)) make_idle(table);
  const uint64 batches = writer->batches;
  MemoryContextDelete(writer->memory);
  return batches;
}

}  // namespace streamfilter::pg
