// Execution. Keys are tested and inserted when their row is asked for, not when it is read ahead:
// whoever stops early (LIMIT, a cursor) has no key inserted whose row it has not seen. Who asks for
// all of them, whatever comes, has a whole batch judged at once.
#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
}

#include "pg/fdw/batch_scan.hpp"
#include "pg/handle/event_time.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/key_call.hpp"
#include "pg/trigger/judged_once.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kBatch = 32;
constexpr int kJudgedBatch = 256;  // at most, if all are judged at once

struct BatchScanState {
  CustomScanState custom;  // first
  Oid filter;
  int count;  // of the values of a key
  Oid* types;
  ExprState** values;
  ScanState* filled;  // the scan below, if it can be made to put rows where they are to stay
  NullableDatum* row;
  KeyCall call;
  MemoryContext memory;  // of the values of a batch
  bool finished;         // the scan below has no more rows
  bool judges_ahead;     // all rows of a batch at once, if nothing is in the way
  bool judged;           // those of this one are
  int room;              // of the batch
  int rows, next;
  uint64 version;   // of the filter that the elements are made for, and
  FilterMode mode;  // its mode
  TupleTableSlot* slots[kJudgedBatch];
  Element elements[kJudgedBatch];
  bool has_key[kJudgedBatch];
  bool seen[kJudgedBatch];
};

BatchScanState* state_of(CustomScanState* node) { return reinterpret_cast<BatchScanState*>(node); }

// Rows are handed over as the scan below gives them; for this node the core expects virtual tuples.
void take_rows_of(CustomScanState* node, PlanState* child, EState* estate) {
  SF_INIT_SCAN_TUPLE_SLOT(estate, &node->ss, ExecGetResultType(child),
                          ExecGetResultSlotOps(child, nullptr));
  ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
}

// A plain scan of a heap hands out the rows of the table in its own slot, as they are.
ScanState* scan_to_fill(PlanState* child) {
  if (!IsA(child, SeqScanState) || child->ps_ProjInfo != nullptr) return nullptr;
  auto* scan = reinterpret_cast<ScanState*>(child);
  return TTS_IS_BUFFERTUPLE(scan->ss_ScanTupleSlot) ? scan : nullptr;
}

// The slot of a scan points to what describes the row, which the scan will overwrite.
void keep_description(TupleTableSlot* slot) {
  auto* row = reinterpret_cast<HeapTupleTableSlot*>(slot);
  row->tupdata = *row->tuple;
  row->tuple = &row->tupdata;
}

// For batches of so many rows.
void make_room(CustomScanState* node, int rows) {
  BatchScanState* state = state_of(node);
  EState* estate = node->ss.ps.state;
  const TupleTableSlot* row = node->ss.ss_ScanTupleSlot;
  MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
  for (; state->room < rows; ++state->room)
    state->slots[state->room] =
        ExecInitExtraTupleSlot(estate, row->tts_tupleDescriptor, row->tts_ops);
  MemoryContextSwitchTo(caller);
}

void begin(CustomScanState* node, EState* estate, int flags) {
  BatchScanState* state = state_of(node);
  auto* plan = reinterpret_cast<CustomScan*>(node->ss.ps.plan);
  PlanState* child = ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, flags);
  node->custom_ps = list_make1(child);
  take_rows_of(node, child, estate);
  state->filled = scan_to_fill(child);
  state->filter = DatumGetObjectId(linitial_node(Const, plan->custom_private)->constvalue);
  state->count = list_length(plan->custom_exprs);
  state->types = static_cast<Oid*>(palloc(sizeof(Oid) * state->count));
  state->values = static_cast<ExprState**>(palloc(sizeof(ExprState*) * state->count));
  state->row = static_cast<NullableDatum*>(palloc(sizeof(NullableDatum) * state->count));
  for (int i = 0; i < state->count; ++i) {
    auto* value = static_cast<Expr*>(list_nth(plan->custom_exprs, i));
    state->types[i] = exprType(reinterpret_cast<Node*>(value));
    state->values[i] = ExecInitExpr(value, &node->ss.ps);
  }
  if (flags & EXEC_FLAG_EXPLAIN_ONLY) return;
  init_key_call(&state->call, "streamfilter_seen", state->types, state->count, false);
  state->memory =
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter batch", ALLOCSET_DEFAULT_SIZES);
  make_room(node, kBatch);
}

void evaluate_values(BatchScanState* state, ExprContext* context, TupleTableSlot* row) {
  context->ecxt_scantuple = row;
  for (int i = 0; i < state->count; ++i)
    state->row[i].value = ExecEvalExpr(state->values[i], context, &state->row[i].isnull);
}

// The keys of the rows of the batch, from one on.
void read_keys(CustomScanState* node, int first) {
  BatchScanState* state = state_of(node);
  state->version = state->call.keys.version;
  state->mode = state->call.keys.filter->mode;
  if (state->mode == FilterMode::off) return;
  MemoryContext caller = MemoryContextSwitchTo(state->memory);
  for (int i = first; i < state->rows; ++i) {
    evaluate_values(state, node->ss.ps.ps_ExprContext, state->slots[i]);
    if (unlikely(!is_current(&state->call.keys)))
      begin_key_call(&state->call, state->filter, Use::judge);
    state->has_key[i] = build_element(&state->call.keys, state->row, &state->elements[i]);
    if (state->has_key[i]) bound_time(state->call.keys.filter, &state->elements[i]);
  }
  MemoryContextSwitchTo(caller);
}

// A copy in the memory of the batch: many slots that each hold a page are slow to let go of.
void keep_copy(MemoryContext memory, TupleTableSlot* kept, TupleTableSlot* row) {
  ExecClearTuple(kept);
  auto* slot = reinterpret_cast<BufferHeapTupleTableSlot*>(kept);
  MemoryContext caller = MemoryContextSwitchTo(memory);
  slot->base.tuple = heap_copytuple(reinterpret_cast<BufferHeapTupleTableSlot*>(row)->base.tuple);
  MemoryContextSwitchTo(caller);
  slot->base.off = 0;
  slot->buffer = InvalidBuffer;
  kept->tts_nvalid = 0;
  kept->tts_flags &= static_cast<uint16>(~TTS_FLAG_EMPTY);
  kept->tts_tid = slot->base.tuple->t_self;
  kept->tts_tableOid = slot->base.tuple->t_tableOid;
}

// The next row, in the slot that keeps it; nullptr: there is none.
TupleTableSlot* fetch_row(BatchScanState* state, PlanState* child, TupleTableSlot* kept) {
  if (state->filled != nullptr && state->judges_ahead) {
    TupleTableSlot* row = ExecProcNode(child);
    if (TupIsNull(row)) return nullptr;
    if (row != state->filled->ss_ScanTupleSlot) return ExecCopySlot(kept, row);
    keep_copy(state->memory, kept, row);
    return kept;
  }
  if (state->filled == nullptr) {
    TupleTableSlot* row = ExecProcNode(child);
    return TupIsNull(row) ? nullptr : ExecCopySlot(kept, row);
  }
  TupleTableSlot* own = state->filled->ss_ScanTupleSlot;
  state->filled->ss_ScanTupleSlot = kept;
  TupleTableSlot* row = ExecProcNode(child);
  state->filled->ss_ScanTupleSlot = own;
  if (TupIsNull(row)) return nullptr;
  if (row != kept) return ExecCopySlot(kept, row);
  keep_description(kept);
  return kept;
}

// What becomes of a row with a key.
bool lets_pass(const BatchScanState* state, bool seen) {
  if (likely(state->mode == FilterMode::enforce)) return !seen;
  count_outcome(state->call.keys.filter, seen, Outcome::would_discard);
  return true;
}

// All rows of the batch, unless the filter is not what it was when their keys were read, or code of
// others has to see one row after the other.
bool judge_batch(BatchScanState* state) {
  begin_key_call(&state->call, state->filter, Use::judge);
  FilterHandle* filter = state->call.keys.filter;
  if (filter->version != state->version || filter->mode != state->mode ||
      state->mode == FilterMode::off || needs_each_row(&state->call.keys))
    return false;
  check_mode(filter, InvalidOid);
  note_asked(filter);
  test_and_insert_keys(filter, state->elements, state->has_key, state->rows, state->seen);
  for (int i = 0; i < state->rows; ++i)
    state->seen[i] = state->has_key[i] && !lets_pass(state, state->seen[i]);
  return true;
}

// Reads the next rows; false if there are none.
bool read_batch(CustomScanState* node) {
  BatchScanState* state = state_of(node);
  auto* child = static_cast<PlanState*>(linitial(node->custom_ps));
  if (state->judges_ahead && state->rows == state->room)
    make_room(node, Min(2 * state->room, kJudgedBatch));
  state->rows = state->next = 0;
  MemoryContextReset(state->memory);
  while (!state->finished && state->rows < state->room) {
    if (fetch_row(state, child, state->slots[state->rows]) == nullptr) {
      state->finished = true;
      break;
    }
    ++state->rows;
  }
  if (state->rows == 0) return false;
  begin_key_call(&state->call, state->filter, Use::judge);
  read_keys(node, 0);
  state->judged = state->judges_ahead && judge_batch(state);
  if (!state->judged && state->mode != FilterMode::off)
    prefetch_keys(state->call.keys.filter, state->elements, state->has_key, state->rows);
  return true;
}

// Judges a row of the batch.
bool passes(BatchScanState* state, int i) {
  FilterHandle* filter = state->call.keys.filter;
  check_mode(filter, InvalidOid);
  if (unlikely(state->mode == FilterMode::off)) return true;
  note_asked(filter);
  if (!state->has_key[i]) return true;
  return lets_pass(state, test_and_insert_fetched_key(filter, state->elements[i]));
}

// Judges the next row, unless it was.
bool next_passes(CustomScanState* node) {
  BatchScanState* state = state_of(node);
  const int i = state->next++;
  if (state->judged) return !state->seen[i];
  // Somebody else's code has run since the batch was read.
  begin_key_call(&state->call, state->filter, Use::judge);
  const FilterHandle* filter = state->call.keys.filter;
  if (unlikely(filter->version != state->version || filter->mode != state->mode))
    read_keys(node, i);
  return passes(state, i);
}

TupleTableSlot* next_row(ScanState* scan) {
  auto* node = reinterpret_cast<CustomScanState*>(scan);
  BatchScanState* state = state_of(node);
  for (;;) {
    if (state->next == state->rows && !read_batch(node)) return nullptr;
    if (next_passes(node)) return state->slots[state->next - 1];
    InstrCountFiltered1(node, 1);
  }
}

bool recheck(ScanState*, TupleTableSlot*) { return true; }

TupleTableSlot* execute(CustomScanState* node) { return ExecScan(&node->ss, next_row, recheck); }

TupleTableSlot* execute_first(CustomScanState* node) {
  PreventCommandDuringRecovery("streamfilter_seen()");
  PreventCommandIfReadOnly("streamfilter_seen()");
  return execute(node);
}

void clear_batch(BatchScanState* state) {
  for (TupleTableSlot* slot : state->slots)
    if (slot != nullptr) ExecClearTuple(slot);
  state->rows = state->next = 0;
  state->finished = false;
}

void end(CustomScanState* node) {
  clear_batch(state_of(node));
  ExecEndNode(static_cast<PlanState*>(linitial(node->custom_ps)));
}

void rescan(CustomScanState* node) {
  clear_batch(state_of(node));
  auto* child = static_cast<PlanState*>(linitial(node->custom_ps));
  if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(child, node->ss.ps.chgParam);
  ExecReScan(child);
}

void explain(CustomScanState* node, List*, ExplainState* es) {
  const BatchScanState* state = state_of(node);
  const char* name = get_rel_name(state->filter);
  ExplainPropertyText("Discards Keys Seen By", name != nullptr ? name : "(dropped filter)", es);
  if (es->verbose) ExplainPropertyInteger("Rows Read Ahead", nullptr, Max(state->room, kBatch), es);
  // As the server says it of nodes whose plan has conditions.
  const auto* counts = node->ss.ps.instrument;
  if (!es->analyze || counts == nullptr || counts->nloops <= 0) return;
  if (counts->nfiltered1 > 0 || es->format != EXPLAIN_FORMAT_TEXT)
    ExplainPropertyFloat("Rows Removed by Filter", nullptr, counts->nfiltered1 / counts->nloops, 0,
                         es);
}

const CustomExecMethods kExecMethods = {
    "streamfilter batch",
    begin,
    execute_first,
    end,
    rescan,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    explain,
};

}  // namespace

void judge_ahead(PlanState* node) {
  if (!IsA(node, CustomScanState)) return;
  auto* scan = reinterpret_cast<CustomScanState*>(node);
  if (scan->methods == &kExecMethods) state_of(scan)->judges_ahead = true;
}

Node* create_batch_scan_state(CustomScan*) {
  auto* state = static_cast<BatchScanState*>(palloc0(sizeof(BatchScanState)));
  NodeSetTag(state, T_CustomScanState);
  state->custom.methods = &kExecMethods;
  return reinterpret_cast<Node*>(state);
}

}  // namespace streamfilter::pg
