// Execution. Keys are tested and inserted when their row is asked for, not when it is read ahead:
// whoever stops early (LIMIT, a cursor) has no key inserted whose row it has not seen.
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
  int rows, next;        // of the batch
  uint64 version;        // of the filter that the elements are made for, and
  FilterMode mode;       // its mode
  TupleTableSlot* slots[kBatch];
  Element elements[kBatch];
  bool has_key[kBatch];
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
      AllocSetContextCreate(CurrentMemoryContext, "streamfilter batch", ALLOCSET_SMALL_SIZES);
  for (TupleTableSlot*& slot : state->slots)
    slot = ExecInitExtraTupleSlot(estate, node->ss.ss_ScanTupleSlot->tts_tupleDescriptor,
                                  node->ss.ss_ScanTupleSlot->tts_ops);
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

// The next row, in the slot that keeps it; nullptr: there is none.
TupleTableSlot* fetch_row(BatchScanState* state, PlanState* child, TupleTableSlot* kept) {
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

// Reads the next rows; false if there are none.
bool read_batch(CustomScanState* node) {
  BatchScanState* state = state_of(node);
  auto* child = static_cast<PlanState*>(linitial(node->custom_ps));
  state->rows = state->next = 0;
  MemoryContextReset(state->memory);
  while (!state->finished && state->rows < kBatch) {
    if (fetch_row(state, child, state->slots[state->rows]) == nullptr) {
      state->finished = true;
      break;
    }
    ++state->rows;
  }
  if (state->rows == 0) return false;
  begin_key_call(&state->call, state->filter, Use::judge);
  read_keys(node, 0);
  if (state->mode != FilterMode::off)
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
  const bool seen = test_and_insert_fetched_key(filter, state->elements[i]);
  if (likely(state->mode == FilterMode::enforce)) return !seen;
  count_outcome(filter, seen, Outcome::would_discard);
  return true;
}

TupleTableSlot* next_row(ScanState* scan) {
  auto* node = reinterpret_cast<CustomScanState*>(scan);
  BatchScanState* state = state_of(node);
  for (;;) {
    if (state->next == state->rows && !read_batch(node)) return nullptr;
    const int i = state->next++;
    // Somebody else's code has run since the batch was read.
    begin_key_call(&state->call, state->filter, Use::judge);
    FilterHandle* filter = state->call.keys.filter;
    if (unlikely(filter->version != state->version || filter->mode != state->mode))
      read_keys(node, i);
    if (passes(state, i)) return state->slots[i];
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
  if (es->verbose) ExplainPropertyInteger("Rows Read Ahead", nullptr, kBatch, es);
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

Node* create_batch_scan_state(CustomScan*) {
  auto* state = static_cast<BatchScanState*>(palloc0(sizeof(BatchScanState)));
  NodeSetTag(state, T_CustomScanState);
  state->custom.methods = &kExecMethods;
  return reinterpret_cast<Node*>(state);
}

}  // namespace streamfilter::pg
