// Execution. Rows are read ahead in batches, their keys hashed, and the memory of the keys fetched:
//
// - Row by row, a key is tested and inserted when its row is asked for. If the caller stops early
//   (LIMIT, a cursor), no key is inserted whose row it has not seen. Between two rows foreign code
//   runs, which may alter the filter or its mode: then the rest of the elements is made anew.
// - As a whole (judge_batch), if AheadRule says that all rows are taken and nobody looks at the
//   filter meanwhile. A batch is then larger, and one message for filters on other servers.
//
// Nor does the scan below notice: batch_scan_plan.cpp takes only scans whose rows do not depend on
// when they are read. A row stays in its page, if the batch pins that.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/instrument.h"
}

#include "pg/citus/citus_nodes.hpp"
#include "pg/fdw/batch_scan.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/waiting_code.hpp"
#include "pg/server/compat_private.hpp"
#include "pg/trigger/judge_row.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kBatch = 32;
// Limits if all rows are judged at once: rows, for other servers, or bytes.
constexpr int kJudgedBatch = 256;
constexpr int kRemoteBatch = 512;
constexpr Size kMaxBytes = 65535;

// Pages that a batch pins, each once, because a pin for each row costs more than a copy of the row.
// Rows of further pages are copied: otherwise scans of many partitions would pin all buffers of the
// server, or of the session's temporary tables.
struct KeptPages {
  static constexpr int kMost = 5;
  int count;
  Buffer buffers[kMost];
};

// What the elements of a batch were made for.
struct MadeFor {
  uint64 version;  // of the filter
  FilterMode mode;

  bool is_still(const FilterHandle* filter) const {
    return filter->version == version && filter->mode == mode;
  }
};

struct BatchScanState {
  CustomScanState custom;  // must be first
  Oid filter;
  int count;  // number of a key's values
  Oid* types;
  ExprState** values;
  NullableDatum* row;
  KeyCall call;
  MemoryContext memory;  // context of a batch's values
  AheadRule ahead;
  bool finished;   // the scan below has no more rows
  int rows, next;  // of the batch
  KeptPages pages;
  bool judged;  // as a whole; otherwise each row when it is asked for
  MadeFor made_for;
  KeyRoute route;
  int room;  // for rows, in each of these
  TupleTableSlot** slots;
  Element* elements;
  bool* has_key;
  bool* seen;
};

BatchScanState* scan_state_of(CustomScanState* node) {
  return reinterpret_cast<BatchScanState*>(node);
}

bool is_table_scan(const PlanState* node) {
  switch (nodeTag(node)) {
    case T_SeqScanState:
    case T_SampleScanState:
    case T_IndexScanState:
    case T_BitmapHeapScanState:
    case T_TidScanState:
    case T_TidRangeScanState: return true;
    default: return false;
  }
}

// Passes rows on as the scan below gives them; for this node the core expects virtual tuples.
void take_rows_of(CustomScanState* node, PlanState* child, EState* estate) {
  SF_INIT_SCAN_TUPLE_SLOT(estate, &node->ss, ExecGetResultType(child),
                          ExecGetResultSlotOps(child, nullptr));
  ExecAssignScanProjectionInfoWithVarno(&node->ss, INDEX_VAR);
  // WHERE CURRENT OF looks there, and for the row in ss_ScanTupleSlot.
  if (is_table_scan(child))
    node->ss.ss_currentRelation = reinterpret_cast<ScanState*>(child)->ss_currentRelation;
}

template <typename T>
void enlarge(T** values, int room) {
  const Size size = sizeof(T) * static_cast<Size>(room);
  *values = static_cast<T*>(*values == nullptr ? palloc(size) : repalloc(*values, size));
}

// Makes slots for `room` rows. They do not pin the pages of their rows.
void grow_batch(BatchScanState* state, int room) {
  TupleTableSlot* row = state->custom.ss.ss_ScanTupleSlot;
  EState* estate = state->custom.ss.ps.state;
  const InContext context(estate->es_query_cxt);
  enlarge(&state->slots, room);
  enlarge(&state->elements, room);
  enlarge(&state->has_key, room);
  enlarge(&state->seen, room);
  const TupleTableSlotOps* kind = TTS_IS_BUFFERTUPLE(row) ? &TTSOpsHeapTuple : row->tts_ops;
  for (int i = state->room; i < room; ++i)
    state->slots[i] = ExecInitExtraTupleSlot(estate, row->tts_tupleDescriptor, kind);
  state->room = room;
}

void begin_batch_scan(CustomScanState* node, EState* estate, int flags) {
  BatchScanState* state = scan_state_of(node);
  auto* plan = reinterpret_cast<CustomScan*>(node->ss.ps.plan);
  PlanState* child = ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, flags);
  node->custom_ps = list_make1(child);
  take_rows_of(node, child, estate);
  state->filter = DatumGetObjectId(linitial_node(Const, plan->custom_private)->constvalue);
  state->count = list_length(plan->custom_exprs);
  state->types = allocate<Oid>(state->count);
  state->values = allocate<ExprState*>(state->count);
  state->row = allocate<NullableDatum>(state->count);
  for (int i = 0; i < state->count; ++i) {
    auto* value = static_cast<Expr*>(list_nth(plan->custom_exprs, i));
    state->types[i] = exprType(reinterpret_cast<Node*>(value));
    state->values[i] = ExecInitExpr(value, &node->ss.ps);
  }
  if (flags & EXEC_FLAG_EXPLAIN_ONLY) return;
  require_shard_node(state->filter, "streamfilter_seen");
  init_key_call(&state->call, "streamfilter_seen", state->types, state->count, false);
  state->memory = make_small_context("streamfilter batch");
  grow_batch(state, kBatch);
}

void evaluate_values(BatchScanState* state, ExprContext* context, TupleTableSlot* row) {
  context->ecxt_scantuple = row;
  for (int i = 0; i < state->count; ++i)
    state->row[i].value = ExecEvalExpr(state->values[i], context, &state->row[i].isnull);
}

// Reads the keys of the batch's rows, from `first` on.
void read_keys(CustomScanState* node, int first) {
  BatchScanState* state = scan_state_of(node);
  state->made_for = {state->call.keys.version, state->call.keys.filter->mode};
  if (state->made_for.mode == FilterMode::off) return;
  state->route = route_in_query(&state->call.keys);
  const InContext context(state->memory);
  for (int i = first; i < state->rows; ++i) {
    evaluate_values(state, node->ss.ps.ps_ExprContext, state->slots[i]);
    if (unlikely(!is_current(&state->call.keys)))
      begin_key_call(&state->call, state->filter, Use::judge);
    state->has_key[i] = build_element(&state->call.keys, state->row, &state->elements[i]);
    if (state->has_key[i]) bound_time(state->call.keys.filter, &state->elements[i]);
  }
}

// False: the batch has enough pages.
pg_attribute_always_inline bool keep_page(BatchScanState* state, Buffer page) {
  KeptPages* pages = &state->pages;
  if (pages->count > 0 && pages->buffers[pages->count - 1] == page) return true;
  if (!BufferIsValid(page) || pages->count == KeptPages::kMost) return false;
  IncrBufferRefCount(page);
  pages->buffers[pages->count++] = page;
  return true;
}

void release_pages(KeptPages* pages) {
  while (pages->count > 0) ReleaseBuffer(pages->buffers[--pages->count]);
}

// Most of what a row costs is the wait until it has come from memory. So it is only asked for here,
// and read when others have been asked for.
pg_attribute_always_inline void prefetch_row(const HeapTupleData* tuple) {
  constexpr uint32 kLine = 64, kMost = 4 * kLine;
  const char* row = reinterpret_cast<const char*>(tuple->t_data);
  for (uint32 at = 0; at < Min(tuple->t_len, kMost); at += kLine) __builtin_prefetch(row + at);
}

// Lets a slot point to a row in a page. ExecStoreHeapTuple would read the row.
pg_attribute_always_inline void point_to(TupleTableSlot* slot, const HeapTupleData* tuple) {
  ExecClearTuple(slot);
  auto* heap_slot = reinterpret_cast<HeapTupleTableSlot*>(slot);
  heap_slot->tupdata = *tuple;
  heap_slot->tuple = &heap_slot->tupdata;
  slot->tts_flags &= static_cast<uint16>(~TTS_FLAG_EMPTY);
  slot->tts_tid = tuple->t_self;
  slot->tts_tableOid = tuple->t_tableOid;
}

pg_attribute_always_inline void keep_row(BatchScanState* state, TupleTableSlot* kept,
                                         TupleTableSlot* row) {
  const auto* paged = reinterpret_cast<BufferHeapTupleTableSlot*>(row);
  if (!TTS_IS_HEAPTUPLE(kept) || !TTS_IS_BUFFERTUPLE(row) || !keep_page(state, paged->buffer)) {
    ExecCopySlot(kept, row);
    return;
  }
  prefetch_row(paged->base.tuple);
  point_to(kept, paged->base.tuple);
}

pg_attribute_always_inline bool fetch_into(BatchScanState* state, int i) {
  if (state->finished) return false;
  TupleTableSlot* row = ExecProcNode(static_cast<PlanState*>(linitial(state->custom.custom_ps)));
  state->finished = TupIsNull(row);
  if (!state->finished) keep_row(state, state->slots[i], row);
  return !state->finished;
}

Size size_of(TupleTableSlot* row) {
  if (TTS_IS_HEAPTUPLE(row)) return reinterpret_cast<HeapTupleTableSlot*>(row)->tuple->t_len;
  slot_getallattrs(row);
  return heap_compute_data_size(row->tts_tupleDescriptor, row->tts_values, row->tts_isnull);
}

// Does it not matter when a key is asked for?
bool asks_ahead(BatchScanState* state) {
  const KeyBuilder* keys = &state->call.keys;
  AheadRule* rule = &state->ahead;
  if (rule->holds == nullptr || keys->filter->mode == FilterMode::off || needs_each_row(keys))
    return false;
  if (!rule->is_answered && !rule->holds(rule->insert)) rule->holds = nullptr;
  rule->is_answered = true;
  return rule->holds != nullptr;
}

// Fewer messages justify more room at once than fewer waits for memory.
int room_for_more(const BatchScanState* state) {
  return asks_servers(state->call.keys.filter) ? kRemoteBatch : Min(2 * state->room, kJudgedBatch);
}

pg_noinline void read_more_rows(BatchScanState* state) {
  const int room = room_for_more(state);
  if (!state->finished && state->room < room) grow_batch(state, room);
  Size bytes = 0;
  for (int i = 0; i < state->rows; ++i) bytes += size_of(state->slots[i]);
  while (state->rows < state->room && bytes <= kMaxBytes && fetch_into(state, state->rows))
    bytes += size_of(state->slots[state->rows++]);
}

Outcome outcome_of_repeats(const BatchScanState* state) {
  return state->made_for.mode == FilterMode::enforce ? Outcome::discarded : Outcome::would_discard;
}

void judge_batch(BatchScanState* state) {
  FilterHandle* filter = state->call.keys.filter;
  if (!state->made_for.is_still(filter)) return;
  check_mode(filter, InvalidOid);
  note_asked(filter);
  filter->route = state->route;
  judge_keys(filter, state->elements, state->has_key, state->rows, outcome_of_repeats(state),
             state->seen);
  state->judged = true;
}

void clear_slots(BatchScanState* state) {
  for (int i = 0; i < state->room; ++i) ExecClearTuple(state->slots[i]);
  release_pages(&state->pages);
}

// Reads the next rows; false if there are none.
bool read_batch(CustomScanState* node) {
  BatchScanState* state = scan_state_of(node);
  release_pages(&state->pages);
  state->rows = state->next = 0;
  state->judged = false;
  MemoryContextReset(state->memory);
  while (state->rows < kBatch && fetch_into(state, state->rows)) ++state->rows;
  if (state->rows == 0) {
    clear_slots(state);
    return false;
  }
  begin_key_call(&state->call, state->filter, Use::judge);
  const bool ahead = asks_ahead(state);
  if (ahead) {
    read_more_rows(state);
    begin_key_call(&state->call, state->filter, Use::judge);
  }
  read_keys(node, 0);
  if (state->made_for.mode == FilterMode::off) return true;
  if (ahead)
    judge_batch(state);
  else
    prefetch_keys(state->call.keys.filter, state->elements, state->has_key, state->rows);
  return true;
}

// Was the key of a row of the batch seen? Judges rows one by one.
bool is_repeat(const BatchScanState* state, int i) {
  FilterHandle* filter = state->call.keys.filter;
  check_mode(filter, InvalidOid);
  if (unlikely(state->made_for.mode == FilterMode::off)) return false;
  note_asked(filter);
  filter->route = state->route;
  if (unlikely(!state->has_key[i])) count_row(filter, RowCount::null_keys);
  return state->has_key[i] && judge_key(filter, state->elements[i], Intent::insert_fetched,
                                        outcome_of_repeats(state)) != Verdict::fresh;
}

bool passes(const BatchScanState* state, int i) {
  const bool seen = state->judged ? state->seen[i] : is_repeat(state, i);
  return !seen || state->made_for.mode != FilterMode::enforce;
}

TupleTableSlot* next_judged_row(ScanState* scan) {
  auto* node = reinterpret_cast<CustomScanState*>(scan);
  BatchScanState* state = scan_state_of(node);
  for (;;) {
    if (state->next == state->rows && !read_batch(node)) return nullptr;
    const int i = state->next++;
    if (!state->judged) {
      // Foreign code has run since the batch was read.
      begin_key_call(&state->call, state->filter, Use::judge);
      if (unlikely(!state->made_for.is_still(state->call.keys.filter))) read_keys(node, i);
    }
    if (passes(state, i)) {
      scan->ss_ScanTupleSlot = state->slots[i];
      return state->slots[i];
    }
    InstrCountFiltered1(node, 1);
  }
}

bool recheck(ScanState*, TupleTableSlot*) { return true; }

TupleTableSlot* execute_batch_scan(CustomScanState* node) {
  return ExecScan(&node->ss, next_judged_row, recheck);
}

TupleTableSlot* execute_first(CustomScanState* node) {
  require_writable("streamfilter_seen()");
  return execute_batch_scan(node);
}

void clear_batch(BatchScanState* state) {
  clear_slots(state);
  state->rows = state->next = 0;
  state->finished = false;
}

void end_batch_scan(CustomScanState* node) {
  clear_batch(scan_state_of(node));
  ExecEndNode(static_cast<PlanState*>(linitial(node->custom_ps)));
}

void rescan(CustomScanState* node) {
  clear_batch(scan_state_of(node));
  auto* child = static_cast<PlanState*>(linitial(node->custom_ps));
  if (node->ss.ps.chgParam != nullptr) UpdateChangedParamSet(child, node->ss.ps.chgParam);
  ExecReScan(child);
}

void explain(CustomScanState* node, List*, ExplainState* es) {
  const BatchScanState* state = scan_state_of(node);
  const char* name = get_rel_name(state->filter);
  ExplainPropertyText("Discards Keys Seen By", name != nullptr ? name : "(dropped filter)", es);
  if (es->verbose) ExplainPropertyInteger("Rows Read Ahead", nullptr, Max(state->room, kBatch), es);
  // As PostgreSQL shows it for nodes with conditions.
  const auto* counts = node->ss.ps.instrument;
  if (!es->analyze || counts == nullptr || counts->nloops <= 0) return;
  if (counts->nfiltered1 > 0 || es->format != EXPLAIN_FORMAT_TEXT)
    ExplainPropertyFloat("Rows Removed by Filter", nullptr, counts->nfiltered1 / counts->nloops, 0,
                         es);
}

const CustomExecMethods kExecMethods = [] {
  CustomExecMethods methods = {};
  methods.CustomName = kBatchNode;
  methods.BeginCustomScan = begin_batch_scan;
  methods.ExecCustomScan = execute_first;
  methods.EndCustomScan = end_batch_scan;
  methods.ReScanCustomScan = rescan;
  methods.ExplainCustomScan = explain;
  return methods;
}();

}  // namespace

Node* create_batch_scan_state(CustomScan*) {
  auto* state = allocate_zeros<BatchScanState>();
  NodeSetTag(state, T_CustomScanState);
  state->custom.methods = &kExecMethods;
  return reinterpret_cast<Node*>(state);
}

// These nodes read all rows of the node below, in its order.
void ask_ahead(PlanState* node, const AheadRule& rule) {
  if (node == nullptr) return;
  switch (nodeTag(node)) {
    case T_ResultState:
    case T_ProjectSetState:
    case T_SortState: return ask_ahead(outerPlanState(node), rule);
    case T_SubqueryScanState:
      return ask_ahead(reinterpret_cast<SubqueryScanState*>(node)->subplan, rule);
    case T_AppendState: {
      const auto* append = reinterpret_cast<const AppendState*>(node);
      for (int i = 0; i < append->as_nplans && append->as_nasyncplans == 0; ++i)
        ask_ahead(append->appendplans[i], rule);
      return;
    }
    case T_CustomScanState: {
      auto* scan = reinterpret_cast<CustomScanState*>(node);
      if (scan->methods == &kExecMethods) scan_state_of(scan)->ahead = rule;
      return;
    }
    default: return;
  }
}

}  // namespace streamfilter::pg
