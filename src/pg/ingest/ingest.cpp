#include "pg/server/postgres.hpp"

extern "C" {
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
#include "pg/trigger/key_indexes.hpp"

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
  IngestTable* only;    // the target, if it has no partitions
  ExprContext* values;  // of rows in the slots below; nullptr: there are none
  TupleDesc type;
  TupleTableSlot** to_fill;  // each for the row of that number in its batch; nullptr: not made yet
  IngestCounts counts;
  // The batch.
  uint64 epoch;  // handle_epoch when its elements were made
  int rows, room;
  Size bytes;
  IngestTable* tables[kRemoteBatch];
  HeapTuple tuples[kRemoteBatch];  // nullptr: the row is in its slot
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

IngestTable* make_table(Ingest* ingest, ResultRelInfo* target) {
  const InContext context(ingest->memory);
  auto* table = static_cast<IngestTable*>(palloc0(sizeof(IngestTable)));
  table->target = target;
  table->writer = add_table(ingest->writer, target);
  const TargetRule rule = find_rule(target);
  table->obstacle = rule.obstacle;
  table->judged = rule.obstacle == nullptr && enabled && rule.judge != nullptr;
  if (table->judged) {
    init_row_judge(&table->judge, rule.kind, ingest->statement, ingest->memory);
    table->judge.row = {rule.judge, target->ri_RelationDesc};
    table->judge.statement.triggers = target->ri_TrigDesc;
    table->clock = clock_of(target, rule.judge);
  }
  return table;
}

// Reports errors in the trigger when the first row comes.
void prepare_table(Ingest* ingest, IngestTable* table) {
  table->prepared = true;
  if (!table->judged) return;
  prepare_judge(&table->judge);
  const FilterHandle* filter = table->judge.keys.filter;
  if (needs_each_row(&table->judge.keys))
    table->obstacle = "the key of each row is needed as soon as it is known";
  else if (ingest->asked && (filter->tree != nullptr || is_remote(filter->relation)))
    table->obstacle = "the query asks a filter, too, which may be of the same tree";
  else if (ingest->skips_conflicts && may_refuse_new_keys(table->target, table->judge.found.plan))
    table->obstacle = "an index may refuse a row whose key is then not remembered";
  else if (table->judge.own.kind == TriggerKind::divert) {
    const InContext context(ingest->memory);
    table->diverted = open_diverted(&ingest->diverting, &table->judge, &table->obstacle);
  }
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
  const InContext context(ingest->batch_memory);
  prepare_judge(&table->judge);
  if (is_judged(table)) {
    Element* element = &ingest->elements[i];
    ingest->has_key[i] = build_element(&table->judge.keys, row, element);
    if (ingest->has_key[i]) bound_time(table->judge.keys.filter, element);
  }
}

// A tuple is formed only of a row that stays, or that is needed for something else.
HeapTuple tuple_of_row(Ingest* ingest, int i) {
  if (ingest->tuples[i] == nullptr)
    ingest->tuples[i] = copy_row(ingest->writer, ingest->to_fill[i]);
  return ingest->tuples[i];
}

// Its filter has changed since the key was read.
void read_key_again(Ingest* ingest, int i) {
  BatchTable* table = ingest->tables[i]->writer;
  TupleTableSlot* row = take_slot(table);
  ExecStoreHeapTuple(tuple_of_row(ingest, i), row, false);
  read_key(ingest, i, row);
  give_back_slot(table, row);
}

// For EXPLAIN ANALYZE of the trigger: a call per row, and the whole time with the first.
void stop_clocks(const Ingest* ingest, int first, int end) {
  SF_STOP_TRIGGER_CLOCK(ingest->tables[first]->clock);
  for (int i = first + 1; i < end; ++i) {
    SF_START_TRIGGER_CLOCK(ingest->tables[i]->clock);
    SF_STOP_TRIGGER_CLOCK(ingest->tables[i]->clock);
  }
}

// Of a run of judged rows that go to one table; returns its end.
int count_run(Ingest* ingest, int first, int end, Outcome outcome) {
  IngestTable* table = ingest->tables[first];
  int repeats = 0, i = first;
  do repeats += ingest->repeats[i];
  while (++i < end && ingest->tables[i] == table);
  count_judged(&table->judge, i - first, repeats, outcome);
  if (notes_dropped(&table->judge))
    for (int k = first; k < i; ++k)
      if (ingest->repeats[k]) note_dropped(&table->judge, ingest->elements[k]);
  return i;
}

// Does one filter judge the row and the one before, with one outcome?
bool are_judged_alike(const Ingest* ingest, int i, const FilterHandle* filter, Outcome outcome) {
  const IngestTable* table = ingest->tables[i];
  return likely(table == ingest->tables[i - 1]) ||
         (is_judged(table) && table->judge.keys.filter == filter &&
          of_repeats(&table->judge) == outcome);
}

// Judges the run of rows, from `first` on, that one filter judges with one outcome; `alone`: only
// the first. Returns its end.
int judge_run(Ingest* ingest, int first, bool alone) {
  FilterHandle* filter = ingest->tables[first]->judge.keys.filter;
  const Outcome outcome = of_repeats(&ingest->tables[first]->judge);
  SF_TRIGGER_CLOCK* clock = ingest->tables[first]->clock;
  if (unlikely(clock != nullptr)) SF_START_TRIGGER_CLOCK(clock);
  int end = first;
  do {
    if (end == first || ingest->tables[end] != ingest->tables[end - 1])
      check_judged_once(&ingest->tables[end]->judge);
    ++end;
  } while (!alone && end < ingest->rows && are_judged_alike(ingest, end, filter, outcome));
  waiting_key = nullptr;
  judge_keys(filter, ingest->elements + first, ingest->has_key + first, end - first, outcome,
             ingest->repeats + first);
  for (int i = first; i < end;) i = count_run(ingest, i, end, outcome);
  if (unlikely(clock != nullptr)) stop_clocks(ingest, first, end);
  return end;
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
    i = judge_run(ingest, i, changed);
  }
  look_at(ingest->watch, 0);
}

void mark_row(Ingest* ingest, int i, TupleTableSlot* row) {
  const InContext context(row_memory(ingest->writer));
  HeapTuple marked =
      set_mark(&ingest->tables[i]->judge, row, ingest->tuples[i], ingest->repeats[i]);
  if (marked != ingest->tuples[i]) ExecStoreHeapTuple(marked, row, false);
}

bool enforces(const IngestTable* table) {
  return is_judged(table) && table->judge.keys.filter->mode == FilterMode::enforce;
}

// If rows are compared with an index, each must be in it before the next one comes.
void give(Ingest* ingest, const IngestTable* table, TupleTableSlot* row, uint64 number) {
  const bool at_once = ingest->skips_conflicts || table->judge.found.key_indexes != NIL;
  ingest->at_once |= at_once;
  ++(write_row(table->writer, row, number, at_once) ? ingest->counts.inserted
                                                    : ingest->counts.conflicting);
}

// First collects the kept rows. Branchless, because the condition is unpredictable.
void write_kept(Ingest* ingest) {
  uint16 kept[kRemoteBatch];
  int count = 0;
  for (int i = 0; i < ingest->rows; ++i) {
    const IngestTable* table = ingest->tables[i];
    const bool discards = table->judge.own.kind != TriggerKind::mark && enforces(table);
    kept[count] = static_cast<uint16>(i);
    count += !(discards & ingest->repeats[i]);
  }
  ingest->counts.discarded += static_cast<uint64>(ingest->rows - count);
  for (int k = 0; k < count; ++k) {
    const int i = kept[k];
    const IngestTable* table = ingest->tables[i];
    TupleTableSlot* row = take_slot(table->writer);
    ExecStoreHeapTuple(tuple_of_row(ingest, i), row, false);
    if (is_judged(table) && is_skipped(&table->judge, row)) {
      ++ingest->counts.discarded;
      ingest->repeats[i] = true;
      give_back_slot(table->writer, row);
      continue;
    }
    if (table->judge.own.kind == TriggerKind::mark && enforces(table)) mark_row(ingest, i, row);
    give(ingest, table, row, ingest->numbers[i]);
  }
}

void divert_repeats(Ingest* ingest) {
  if (ingest->diverting.targets == NIL) return;
  for (int i = 0; i < ingest->rows; ++i) {
    const IngestTable* table = ingest->tables[i];
    if (table->diverted == nullptr || !ingest->repeats[i] || !enforces(table)) continue;
    TupleTableSlot* row = take_slot(table->writer);
    ExecStoreHeapTuple(tuple_of_row(ingest, i), row, false);
    divert_with_others(&ingest->diverting, table->diverted, row, ingest->numbers[i]);
    give_back_slot(table->writer, row);
  }
  write_diverted(&ingest->diverting);
}

void settle_batch(Ingest* ingest) {
  if (ingest->rows == 0) return;
  judge_rows(ingest);
  write_kept(ingest);
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

// Nobody judges the row, and no judged row waits before it.
void write_now(Ingest* ingest, const IngestTable* table, TupleTableSlot* row, uint64 number) {
  TupleTableSlot* kept = take_slot(table->writer);
  ExecStoreHeapTuple(copy_row(ingest->writer, row), kept, false);
  give(ingest, table, kept, number);
  write_if_many(ingest->writer);
}

}  // namespace

Ingest* begin_ingest(ModifyTableState* node, WriteMode mode, RowWatch watch, bool asked) {
  MemoryContext memory =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter ingest", ALLOCSET_DEFAULT_SIZES);
  auto* ingest = static_cast<Ingest*>(MemoryContextAlloc(memory, sizeof(Ingest)));
  memset(static_cast<void*>(ingest), 0, offsetof(Ingest, tables));
  const InContext context(memory);
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
  return ingest;
}

ExprContext* keep_values(Ingest* ingest) {
  MemoryContext caller = MemoryContextSwitchTo(ingest->memory);
  ingest->values = CreateExprContext(ingest->estate);
  // A copy, because the server counts references to its own.
  ingest->type =
      CreateTupleDescCopyConstr(RelationGetDescr(ingest->node->rootResultRelInfo->ri_RelationDesc));
  ingest->to_fill = static_cast<TupleTableSlot**>(palloc0(sizeof(TupleTableSlot*) * kRemoteBatch));
  MemoryContextSwitchTo(caller);
  return ingest->values;
}

TupleTableSlot* row_to_fill(Ingest* ingest) {
  TupleTableSlot** slot = &ingest->to_fill[ingest->rows];
  if (likely(*slot != nullptr)) return *slot;
  MemoryContext caller = MemoryContextSwitchTo(ingest->memory);
  *slot = MakeSingleTupleTableSlot(ingest->type, &TTSOpsVirtual);
  MemoryContextSwitchTo(caller);
  return *slot;
}

// Memory comes in blocks, each twice as large as the one before: the last is about to be used.
void free_values(Ingest* ingest) {
  if (MemoryContextMemAllocated(ingest->values->ecxt_per_tuple_memory, false) > 2 * kMaxBytes)
    settle_batch(ingest);
  if (ingest->rows == 0) ResetExprContext(ingest->values);
}

void ingest_row(Ingest* ingest, TupleTableSlot* row, uint64 number) {
  ++ingest->counts.rows;
  IngestTable* table = ingest->only;
  if (table == nullptr)
    table = ingest_table_of(
        ingest, ExecFindPartition(ingest->node, ingest->node->rootResultRelInfo,
                                  ingest->node->mt_partition_tuple_routing, row, ingest->estate));
  if (unlikely(!table->prepared)) prepare_table(ingest, table);
  if (table != ingest->only)
    if (const TupleConversionMap* map = SF_ROOT_TO_CHILD_MAP(table->target, ingest->estate))
      row = execute_attr_map_slot(map->attrMap, row, table->target->ri_PartitionTupleSlot);
  const int i = ingest->rows;
  if (unlikely(table->obstacle != nullptr)) {
    insert_alone(ingest, table, ExecCopySlotHeapTuple(row), number);
  } else if (!table->judged && i == 0) {
    write_now(ingest, table, row, number);
  } else {
    if (i == 0) {
      ingest->epoch = handle_epoch;
      const bool asks = is_judged(table) && asks_servers(table->judge.keys.filter);
      ingest->room = asks ? kRemoteBatch : kBatch;
    }
    ingest->tables[i] = table;
    ingest->numbers[i] = number;
    read_key(ingest, i, row);
    if (ingest->values != nullptr && row == ingest->to_fill[i]) {
      ingest->tuples[i] = nullptr;
    } else {
      ingest->tuples[i] = copy_row(ingest->writer, row);
      ingest->bytes += ingest->tuples[i]->t_len;
    }
    ++ingest->rows;
  }
  ResetPerTupleExprContext(ingest->estate);
  if (ingest->rows == ingest->room || ingest->bytes > kMaxBytes) settle_batch(ingest);
  if (ingest->values != nullptr) free_values(ingest);
}

TupleTableSlot* next_inserted(Ingest* ingest) { return next_written(ingest->writer); }

void settle_ingest(Ingest* ingest) {
  settle_batch(ingest);
  write_batch(ingest->writer);
}

IngestCounts finish_ingest(Ingest* ingest) {
  settle_batch(ingest);
  ingest->counts.batches += finish_batch_writer(ingest->writer);
  finish_diverting(&ingest->diverting);
  for (auto* opened : each<ResultRelInfo>(ingest->targets)) keep_on_target(opened, nullptr);
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
