#include "pg/server/postgres.hpp"

extern "C" {
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "executor/execPartition.h"
#include "executor/instrument.h"
}

#include "pg/handle/filter_keys.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/ingest/diverted_rows.hpp"
#include "pg/ingest/ingest.hpp"
#include "pg/ingest/target_rule.hpp"
#include "pg/server/compat_private.hpp"
#include "pg/trigger/judged_once.hpp"

namespace streamfilter::pg {
namespace {

// Rows that wait for their verdicts: meanwhile the memory of further keys is fetched, or another
// server is asked for all of them at once.
constexpr int kBatch = 256;
constexpr int kRemoteBatch = kMaxUnjudgedRows;
constexpr Size kMaxBytes = 65535;

// A table that rows go to: the target, or a partition.
struct IngestTable {
  ResultRelInfo* target;
  BatchTable* writer;
  const char* obstacle;  // why its rows go one by one; nullptr: in batches
  bool judged;           // by its trigger
  bool prepared;         // the trigger is known to work
  RowJudge judge;
  SF_TRIGGER_CLOCK* clock;  // of the trigger; nullptr: not measured
  DivertedRows* diverted;   // nullptr: repeats are not diverted
};

}  // namespace

struct Ingest {
  EState* estate;
  ModifyTableState* node;
  MemoryContext memory;
  MemoryContext batch_memory;  // context of keys until they are judged
  BatchWriter* writer;
  Diverting diverting;
  RowWatch watch;
  bool asked;
  bool skips_conflicts;
  bool at_once;  // rows of some table are written without waiting for others
  uint64 statement;
  List* targets;
  IngestTable* only;  // the target, if it has no partitions
  TupleTableSlot* to_fill;
  IngestCounts counts;
  // The batch.
  uint64 epoch;  // handle_epoch when its elements were made
  int rows, room;
  Size bytes;
  IngestTable* tables[kRemoteBatch];
  HeapTuple tuples[kRemoteBatch];
  uint64 numbers[kRemoteBatch];
  Element elements[kRemoteBatch];
  bool has_key[kRemoteBatch];
  bool repeats[kRemoteBatch];
};

namespace {

// ---- tables ------------------------------------------------------------------------------------

SF_TRIGGER_CLOCK* clock_of(const ResultRelInfo* target, const Trigger* trigger) {
  return target->ri_TrigInstrument == nullptr
             ? nullptr
             : &target->ri_TrigInstrument[trigger - target->ri_TrigDesc->triggers];
}

// Has the filter only keys that it was given itself?
bool stands_alone(const FilterHandle* filter) {
  return filter->tree == nullptr && !is_remote(filter->relation);
}

IngestTable* make_table(Ingest* ingest, ResultRelInfo* target) {
  MemoryContext caller = MemoryContextSwitchTo(ingest->memory);
  auto* table = static_cast<IngestTable*>(palloc0(sizeof(IngestTable)));
  table->target = target;
  table->writer = add_table(ingest->writer, target);
  const TargetRule rule = find_rule(target);
  table->obstacle = rule.obstacle;
  table->judged = rule.obstacle == nullptr && enabled && rule.judge != nullptr;
  if (table->judged) {
    init_row_judge(&table->judge, rule.kind, ingest->statement, ingest->memory);
    table->judge.trigger = rule.judge;
    table->judge.triggers = target->ri_TrigDesc;
    table->judge.table = target->ri_RelationDesc;
    table->clock = clock_of(target, rule.judge);
  }
  MemoryContextSwitchTo(caller);
  return table;
}

void open_diverted_of(Ingest* ingest, IngestTable* table) {
  MemoryContext caller = MemoryContextSwitchTo(ingest->memory);
  table->diverted = open_diverted(&ingest->diverting, &table->judge, &table->obstacle);
  MemoryContextSwitchTo(caller);
}

// Reports errors in the trigger when the first row comes.
void prepare_table(Ingest* ingest, IngestTable* table) {
  table->prepared = true;
  if (!table->judged) return;
  prepare_judge(&table->judge);
  if (needs_each_row(&table->judge.keys))
    table->obstacle = "the key of each row is needed as soon as it is known";
  else if (ingest->asked && !stands_alone(table->judge.keys.filter))
    table->obstacle = "the query asks a filter, too, which may be of the same tree";
  else if (table->judge.kind == TriggerKind::divert)
    open_diverted_of(ingest, table);
}

IngestTable* ingest_table_of(Ingest* ingest, ResultRelInfo* target) {
  if (void* kept = kept_on_target(target); likely(kept != nullptr))
    return static_cast<IngestTable*>(kept);
  IngestTable* table = make_table(ingest, target);
  MemoryContext caller = MemoryContextSwitchTo(ingest->memory);
  ingest->targets = lappend(ingest->targets, target);
  MemoryContextSwitchTo(caller);
  keep_on_target(target, table);
  return table;
}

// ---- a batch -----------------------------------------------------------------------------------

bool is_judged(const IngestTable* table) {
  return table->judged && table->judge.keys.filter->mode != FilterMode::off;
}

void read_key(Ingest* ingest, int i, TupleTableSlot* row) {
  IngestTable* table = ingest->tables[i];
  ingest->has_key[i] = false;
  if (!table->judged) return;
  MemoryContext caller = MemoryContextSwitchTo(ingest->batch_memory);
  prepare_judge(&table->judge);
  if (unlikely(ingest->skips_conflicts) && is_judged(table))
    check_conflicts(&table->judge, table->target);
  if (is_judged(table)) ingest->has_key[i] = make_element(&table->judge, row, &ingest->elements[i]);
  MemoryContextSwitchTo(caller);
}

// Its filter has changed since the key was read.
void read_key_again(Ingest* ingest, int i) {
  BatchTable* table = ingest->tables[i]->writer;
  TupleTableSlot* row = take_slot(table);
  ExecStoreHeapTuple(ingest->tuples[i], row, false);
  read_key(ingest, i, row);
  give_back_slot(table, row);
}

// End of the run of rows, from `first` on, that one filter judges with one outcome.
int end_of_run(const Ingest* ingest, int first) {
  const FilterHandle* filter = ingest->tables[first]->judge.keys.filter;
  const Outcome outcome = of_repeats(&ingest->tables[first]->judge);
  int end = first + 1;
  while (end < ingest->rows && is_judged(ingest->tables[end]) &&
         ingest->tables[end]->judge.keys.filter == filter &&
         of_repeats(&ingest->tables[end]->judge) == outcome)
    ++end;
  return end;
}

// For EXPLAIN ANALYZE of the trigger: a call per row, and the whole time with the first.
void stop_clocks(const Ingest* ingest, int first, int end) {
  SF_STOP_TRIGGER_CLOCK(ingest->tables[first]->clock);
  for (int i = first + 1; i < end; ++i) {
    SF_START_TRIGGER_CLOCK(ingest->tables[i]->clock);
    SF_STOP_TRIGGER_CLOCK(ingest->tables[i]->clock);
  }
}

void judge_run(Ingest* ingest, int first, int end) {
  SF_TRIGGER_CLOCK* clock = ingest->tables[first]->clock;
  if (unlikely(clock != nullptr)) SF_START_TRIGGER_CLOCK(clock);
  for (int i = first; i < end; ++i)
    if (i == first || ingest->tables[i] != ingest->tables[i - 1])
      check_judged_once(&ingest->tables[i]->judge);
  waiting_key = nullptr;
  const Outcome outcome = of_repeats(&ingest->tables[first]->judge);
  test_and_insert_keys(ingest->tables[first]->judge.keys.filter, ingest->elements + first,
                       ingest->has_key + first, end - first, outcome, ingest->repeats + first);
  for (int i = first; i < end; ++i)
    count_judged(&ingest->tables[i]->judge, ingest->repeats[i], outcome);
  if (unlikely(clock != nullptr)) stop_clocks(ingest, first, end);
}

void judge_rows(Ingest* ingest) {
  for (int i = 0; i < ingest->rows;) {
    // Then use each key as soon as it is read, because the filters may change again at any time.
    const bool changed = unlikely(ingest->epoch != handle_epoch);
    if (changed) read_key_again(ingest, i);
    if (!is_judged(ingest->tables[i])) {
      ingest->repeats[i++] = false;
      continue;
    }
    look_at(ingest->watch, ingest->numbers[i]);
    const int end = changed ? i + 1 : end_of_run(ingest, i);
    judge_run(ingest, i, end);
    i = end;
  }
  look_at(ingest->watch, 0);
}

void mark_row(Ingest* ingest, int i, TupleTableSlot* row) {
  MemoryContext caller = MemoryContextSwitchTo(row_memory(ingest->writer));
  HeapTuple marked =
      set_mark(&ingest->tables[i]->judge, row, ingest->tuples[i], ingest->repeats[i]);
  if (marked != ingest->tuples[i]) ExecStoreHeapTuple(marked, row, false);
  MemoryContextSwitchTo(caller);
}

bool enforces(const IngestTable* table) {
  return is_judged(table) && table->judge.keys.filter->mode == FilterMode::enforce;
}

// Collects rows that are kept. Branchless, because the condition is unpredictable.
int find_kept(Ingest* ingest, uint16* kept) {
  int count = 0;
  for (int i = 0; i < ingest->rows; ++i) {
    const IngestTable* table = ingest->tables[i];
    const bool discards = table->judge.kind != TriggerKind::mark && enforces(table);
    kept[count] = static_cast<uint16>(i);
    count += !(discards & ingest->repeats[i]);
  }
  ingest->counts.discarded += static_cast<uint64>(ingest->rows - count);
  return count;
}

// If rows are compared with an index, each must be in it before the next one comes.
void give(Ingest* ingest, const IngestTable* table, TupleTableSlot* row, uint64 number) {
  const bool at_once = ingest->skips_conflicts || table->judge.key_indexes != NIL;
  ingest->at_once |= at_once;
  ++(write_row(table->writer, row, number, at_once) ? ingest->counts.inserted
                                                    : ingest->counts.conflicting);
}

void write_kept(Ingest* ingest, int i) {
  const IngestTable* table = ingest->tables[i];
  TupleTableSlot* row = take_slot(table->writer);
  ExecStoreHeapTuple(ingest->tuples[i], row, false);
  if (is_judged(table) && is_skipped(&table->judge, row)) {
    ++ingest->counts.discarded;
    ingest->repeats[i] = true;
    return give_back_slot(table->writer, row);
  }
  if (table->judge.kind == TriggerKind::mark && enforces(table)) mark_row(ingest, i, row);
  give(ingest, table, row, ingest->numbers[i]);
}

void divert_repeats(Ingest* ingest) {
  if (ingest->diverting.targets == NIL) return;
  for (int i = 0; i < ingest->rows; ++i) {
    const IngestTable* table = ingest->tables[i];
    if (table->diverted == nullptr || !ingest->repeats[i] || !enforces(table)) continue;
    TupleTableSlot* row = take_slot(table->writer);
    ExecStoreHeapTuple(ingest->tuples[i], row, false);
    divert_with_others(&ingest->diverting, table->diverted, row, ingest->numbers[i]);
    give_back_slot(table->writer, row);
  }
  write_diverted(&ingest->diverting);
}

void settle_batch(Ingest* ingest) {
  if (ingest->rows == 0) return;
  judge_rows(ingest);
  uint16 kept[kRemoteBatch];
  const int count = find_kept(ingest, kept);
  for (int i = 0; i < count; ++i) write_kept(ingest, kept[i]);
  divert_repeats(ingest);
  ingest->rows = 0;
  ingest->bytes = 0;
  ingest->counts.batches += ingest->at_once;
  MemoryContextReset(ingest->batch_memory);
  write_if_many(ingest->writer);
}

// ---- one row -----------------------------------------------------------------------------------

void insert_alone(Ingest* ingest, const IngestTable* table, HeapTuple tuple, uint64 number) {
  settle_batch(ingest);
  TupleTableSlot* row = take_slot(table->writer);
  ExecStoreHeapTuple(tuple, row, true);
  if (ingest->counts.alone++ == 0) ingest->counts.obstacle = table->obstacle;
  ++(write_alone(table->writer, row, number) ? ingest->counts.inserted : ingest->counts.discarded);
}

int room_for(const IngestTable* table) {
  return is_judged(table) && asks_servers(table->judge.keys.filter) ? kRemoteBatch : kBatch;
}

void keep_row(Ingest* ingest, IngestTable* table, TupleTableSlot* row, uint64 number) {
  const int i = ingest->rows;
  if (i == 0) {
    ingest->epoch = handle_epoch;
    ingest->room = room_for(table);
  }
  ingest->tables[i] = table;
  ingest->numbers[i] = number;
  read_key(ingest, i, row);
  ingest->tuples[i] = copy_row(ingest->writer, row);
  ingest->bytes += ingest->tuples[i]->t_len;
  ++ingest->rows;
}

// Nobody judges the row, and no judged row waits before it.
void write_now(Ingest* ingest, const IngestTable* table, TupleTableSlot* row, uint64 number) {
  TupleTableSlot* kept = take_slot(table->writer);
  ExecStoreHeapTuple(copy_row(ingest->writer, row), kept, false);
  give(ingest, table, kept, number);
  write_if_many(ingest->writer);
}

// Converts the row to the row type of its table.
TupleTableSlot* convert(const Ingest* ingest, const IngestTable* table, TupleTableSlot* row) {
  if (table == ingest->only) return row;
  const TupleConversionMap* map = SF_ROOT_TO_CHILD_MAP(table->target, ingest->estate);
  return map == nullptr
             ? row
             : execute_attr_map_slot(map->attrMap, row, table->target->ri_PartitionTupleSlot);
}

IngestTable* find_table(Ingest* ingest, TupleTableSlot* row) {
  if (ingest->only != nullptr) return ingest->only;
  ResultRelInfo* target =
      ExecFindPartition(ingest->node, ingest->node->rootResultRelInfo,
                        ingest->node->mt_partition_tuple_routing, row, ingest->estate);
  return ingest_table_of(ingest, target);
}

}  // namespace

Ingest* begin_ingest(ModifyTableState* node, WriteMode mode, RowWatch watch, bool asked) {
  MemoryContext memory =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter ingest", ALLOCSET_DEFAULT_SIZES);
  auto* ingest = static_cast<Ingest*>(MemoryContextAlloc(memory, sizeof(Ingest)));
  memset(static_cast<void*>(ingest), 0, offsetof(Ingest, tables));
  MemoryContext caller = MemoryContextSwitchTo(memory);
  ingest->estate = node->ps.state;
  ingest->node = node;
  ingest->memory = memory;
  ingest->batch_memory =
      AllocSetContextCreate(memory, "streamfilter keys of a batch", ALLOCSET_DEFAULT_SIZES);
  ingest->watch = watch;
  ingest->asked = asked;
  ingest->skips_conflicts = mode.skips_conflicts;
  ingest->writer = begin_batch_writer(ingest->estate, mode, node->mt_transition_capture, watch);
  ingest->diverting = {ingest->estate, watch, NIL, nullptr};
  ingest->statement = running_statement;
  if (!is_partitioned(node->rootResultRelInfo))
    ingest->only = ingest_table_of(ingest, node->rootResultRelInfo);
  MemoryContextSwitchTo(caller);
  return ingest;
}

TupleTableSlot* row_to_fill(Ingest* ingest) {
  if (ingest->to_fill != nullptr) return ingest->to_fill;
  MemoryContext caller = MemoryContextSwitchTo(ingest->memory);
  ingest->to_fill = MakeSingleTupleTableSlot(
      RelationGetDescr(ingest->node->rootResultRelInfo->ri_RelationDesc), &TTSOpsVirtual);
  MemoryContextSwitchTo(caller);
  return ingest->to_fill;
}

void ingest_row(Ingest* ingest, TupleTableSlot* row, uint64 number) {
  ++ingest->counts.rows;
  IngestTable* table = find_table(ingest, row);
  if (unlikely(!table->prepared)) prepare_table(ingest, table);
  row = convert(ingest, table, row);
  if (unlikely(table->obstacle != nullptr))
    return insert_alone(ingest, table, ExecCopySlotHeapTuple(row), number);
  if (!table->judged && ingest->rows == 0)
    write_now(ingest, table, row, number);
  else
    keep_row(ingest, table, row, number);
  ResetPerTupleExprContext(ingest->estate);
  if (ingest->rows == ingest->room || ingest->bytes > kMaxBytes) settle_batch(ingest);
}

IngestCounts finish_ingest(Ingest* ingest) {
  settle_batch(ingest);
  if (ingest->to_fill != nullptr) ExecDropSingleTupleTableSlot(ingest->to_fill);
  ingest->counts.batches += finish_batch_writer(ingest->writer);
  finish_diverting(&ingest->diverting);
  ListCell* cell;
  foreach (cell, ingest->targets)
    keep_on_target(static_cast<ResultRelInfo*>(lfirst(cell)), nullptr);
  IngestCounts counts = ingest->counts;
  if (counts.obstacle != nullptr)
    counts.obstacle = MemoryContextStrdup(ingest->estate->es_query_cxt, counts.obstacle);
  MemoryContextDelete(ingest->memory);
  return counts;
}

const IngestCounts* counts_of(const Ingest* ingest) { return &ingest->counts; }

uint64 row_that_waits(const Ingest* ingest) {
  if (ingest == nullptr || waiting_key < ingest->elements ||
      waiting_key >= ingest->elements + ingest->rows)
    return 0;
  return ingest->numbers[waiting_key - ingest->elements];
}

}  // namespace streamfilter::pg
