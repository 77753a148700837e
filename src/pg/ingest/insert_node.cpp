#include "pg/server/postgres.hpp"

extern "C" {
#include "rewrite/rewriteManip.h"
#include "utils/fmgroids.h"
}

#include "pg/catalog/volatile_code.hpp"
#include "pg/fdw/batch_scan.hpp"
#include "pg/fdw/fdw_modify.hpp"
#include "pg/handle/lost_rows.hpp"
#include "pg/handle/statement.hpp"
#include "pg/handle/waiting_code.hpp"
#include "pg/ingest/ingest.hpp"
#include "pg/ingest/insert_node.hpp"
#include "pg/ingest/target_rule.hpp"
#include "pg/remote/connection.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
namespace {

struct InsertState {
  CustomScanState custom;  // must be first
  int calls;               // of streamfilter_seen() in the query
  const char* obstacle;    // nullptr: rows go in batches
  IngestCounts counts;
  Ingest* ingest;  // nullptr: no row was read yet
  bool source_ends;
};

InsertState* insert_state_of(CustomScanState* node) { return reinterpret_cast<InsertState*>(node); }

ModifyTableState* insert_of(CustomScanState* node) {
  return castNode(ModifyTableState, linitial(node->custom_ps));
}

// Have the plan's rows the table's row type? If not, or if the table has changed since planning,
// the node below handles it.
bool gives_rows_of(const Plan* plan, TupleDesc table) {
  if (list_length(plan->targetlist) != table->natts) return false;
  for (int i = 0; i < table->natts; ++i) {
    const auto* column = list_nth_node(TargetEntry, plan->targetlist, i);
    const Form_pg_attribute attribute = TupleDescAttr(table, i);
    if (column->resjunk) return false;
    if (!attribute->attisdropped &&
        exprType(reinterpret_cast<Node*>(column->expr)) != attribute->atttypid)
      return false;
  }
  return true;
}

bool skips_conflicts(const ModifyTableState* node) {
  return reinterpret_cast<const ModifyTable*>(node->ps.plan)->onConflictAction != ONCONFLICT_NONE;
}

ProjectionInfo* returning_of(const ModifyTableState* node) {
  return node->rootResultRelInfo->ri_projectReturning;
}

bool is_into_filter(const ModifyTableState* node) {
  return node->rootResultRelInfo->ri_FdwRoutine != nullptr;
}

// Looks for obstacles that arose after planning, or that planning cannot see.
const char* find_obstacle(const ModifyTableState* node) {
  if (!batch_insert) return "streamfilter.batch_insert is off";
  if (node->ps.state->es_epq_active != nullptr) return "rows are checked again";
  if (skips_conflicts(node) && IsolationUsesXactSnapshot())
    return "a row that an index has is held against the snapshot of the transaction";
  if (returning_of(node) != nullptr && is_partitioned(node->rootResultRelInfo))
    return "it returns rows of partitions";
  bool judged;
  if (is_into_filter(node)) {
    if (!takes_batches(node->rootResultRelInfo)) return "something looks at each row";
  } else if (const char* obstacle = why_row_by_row(node, &judged)) {
    return obstacle;
  }
  if (!gives_rows_of(outerPlan(node->ps.plan),
                     RelationGetDescr(node->rootResultRelInfo->ri_RelationDesc)))
    return "the rows of the query are not yet those of the table";
  return nullptr;
}

void begin_insert_node(CustomScanState* node, EState* estate, int flags) {
  InsertState* state = insert_state_of(node);
  auto* plan = reinterpret_cast<CustomScan*>(node->ss.ps.plan);
  node->custom_ps =
      list_make1(ExecInitNode(static_cast<Plan*>(linitial(plan->custom_plans)), estate, flags));
  state->calls = static_cast<int>(intVal(linitial_node(Integer, plan->custom_private)));
  state->obstacle = list_length(plan->custom_private) > 1
                        ? strVal(lsecond_node(String, plan->custom_private))
                        : find_obstacle(insert_of(node));
  // With several calls, keys must be asked in the order of rows.
  if (state->obstacle != nullptr || state->calls != 1 || (flags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
      returning_of(insert_of(node)) != nullptr)
    return;
  ask_ahead(outerPlanState(insert_of(node)), {is_blind_to_filters, insert_of(node)});
}

void insert_keys(InsertState* state, ModifyTableState* insert) {
  const KeyCounts keys = insert_keys_of(outerPlanState(insert), insert->rootResultRelInfo);
  state->counts.rows = keys.added + keys.seen;
  state->counts.inserted = keys.added;
  state->counts.discarded = keys.seen;
  state->counts.batches = keys.batches;
  if (insert->canSetTag) insert->ps.state->es_processed += keys.added;
  insert->mt_done = true;
}

// ---- RETURNING ---------------------------------------------------------------------------------

// Rows are returned after later ones of their batch were inserted. The RETURNING list cannot tell,
// because nothing in it is volatile, and no subquery: rows of this command are invisible to it. The
// reader could tell if it stopped early, since the rows after the last that it takes must not be
// inserted, or if it were a client that gets each row at once, and some before an error. Everybody
// else (portals, SPI, functions) keeps the rows until the statement ends.

bool takes_late_rows(const EState* estate) {
  const Frame* frame = innermost_frame();
  return frame != nullptr && frame->query != nullptr && frame->query->estate == estate &&
         frame->wanted == 0 && frame->query->dest->mydest != DestCopyOut;
}

TupleTableSlot* project(ProjectionInfo* returning, TupleTableSlot* row) {
  ExprContext* context = returning->pi_exprContext;
  ResetExprContext(context);
  context->ecxt_scantuple = row;
  return ExecProject(returning);
}

// ---- inserting ---------------------------------------------------------------------------------

Ingest* begin_rows(const InsertState* state, ModifyTableState* insert) {
  if (insert->fireBSTriggers) ExecBSInsertTriggers(insert->ps.state, insert->rootResultRelInfo);
  insert->fireBSTriggers = false;
  const WriteMode mode = {.options = 0,
                          .spares_cache = false,
                          .skips_conflicts = skips_conflicts(insert),
                          .returns = returning_of(insert) != nullptr};
  return begin_ingest(insert, mode, {}, state->calls > 0);
}

void end_rows(InsertState* state, ModifyTableState* insert) {
  EState* estate = insert->ps.state;
  state->counts = finish_ingest(state->ingest);
  if (insert->canSetTag) estate->es_processed += state->counts.inserted;
  ExecASInsertTriggers(estate, insert->rootResultRelInfo, insert->mt_transition_capture);
  insert->mt_done = true;
}

// Until there is a row for RETURNING; nullptr: all rows are inserted.
TupleTableSlot* insert_rows(InsertState* state, ModifyTableState* insert) {
  if (state->ingest == nullptr) state->ingest = begin_rows(state, insert);
  Ingest* ingest = state->ingest;
  PlanState* source = outerPlanState(insert);
  ProjectionInfo* returning = returning_of(insert);
  TupleTableSlot* row;
  while (returning == nullptr && (row = ExecProcNode(source), !TupIsNull(row)))
    ingest_row(ingest, row, 0);
  while (returning != nullptr) {
    if ((row = next_inserted(ingest)) != nullptr) return project(returning, row);
    if (state->source_ends) break;
    row = ExecProcNode(source);
    state->source_ends = TupIsNull(row);
    state->source_ends ? settle_ingest(ingest) : ingest_row(ingest, row, 0);
  }
  end_rows(state, insert);
  return nullptr;
}

TupleTableSlot* execute_insert_node(CustomScanState* node) {
  InsertState* state = insert_state_of(node);
  ModifyTableState* insert = insert_of(node);
  if (state->obstacle == nullptr && state->ingest == nullptr && returning_of(insert) != nullptr &&
      !takes_late_rows(insert->ps.state))
    state->obstacle = "its reader may take some rows only, or each at once";
  if (state->obstacle != nullptr) return ExecProcNode(&insert->ps);
  if (insert->mt_done) return nullptr;
  if (!is_into_filter(insert)) return insert_rows(state, insert);
  insert_keys(state, insert);
  return nullptr;
}

void end_insert_node(CustomScanState* node) { ExecEndNode(&insert_of(node)->ps); }

void rescan(CustomScanState* node) { ExecReScan(&insert_of(node)->ps); }

void explain_counts(const IngestCounts& counts, ExplainState* es) {
  ExplainPropertyUInteger("Rows In", nullptr, counts.rows, es);
  ExplainPropertyUInteger("Rows Kept", nullptr, counts.inserted, es);
  ExplainPropertyUInteger("Rows Discarded", nullptr, counts.discarded, es);
  if (counts.alone > 0 || es->format != EXPLAIN_FORMAT_TEXT)
    ExplainPropertyUInteger("Rows One By One", nullptr, counts.alone, es);
  ExplainPropertyUInteger("Batches", nullptr, counts.batches, es);
}

void explain(CustomScanState* node, List*, ExplainState* es) {
  const InsertState* state = insert_state_of(node);
  const bool own_way = state->obstacle == nullptr;
  const char* obstacle = own_way ? state->counts.obstacle : state->obstacle;
  const bool batches = own_way && (obstacle == nullptr || state->counts.batches > 0);
  ExplainPropertyText("Inserts", batches ? "in batches" : "row by row", es);
  if (obstacle != nullptr && es->verbose) ExplainPropertyText("Reason", obstacle, es);
  if (!own_way || !es->analyze) return;
  explain_counts(state->counts, es);
  // The node below has done nothing itself.
  insert_of(node)->ps.instrument = node->ss.ps.instrument;
  if (node->ss.ps.instrument != nullptr)
    node->ss.ps.instrument->ntuples2 = static_cast<double>(state->counts.conflicting);
}

const CustomExecMethods kExecMethods = [] {
  CustomExecMethods methods = {};
  methods.CustomName = kInsertNode;
  methods.BeginCustomScan = begin_insert_node;
  methods.ExecCustomScan = execute_insert_node;
  methods.EndCustomScan = end_insert_node;
  methods.ReScanCustomScan = rescan;
  methods.ExplainCustomScan = explain;
  return methods;
}();

Node* create_state(CustomScan*) {
  auto* state = static_cast<InsertState*>(palloc0(sizeof(InsertState)));
  NodeSetTag(state, T_CustomScanState);
  state->custom.methods = &kExecMethods;
  return reinterpret_cast<Node*>(state);
}

const CustomScanMethods kScanMethods = {kInsertNode, create_state};

}  // namespace

Plan* make_insert_node(ModifyTable* insert, int calls, const char* obstacle) {
  CustomScan* node = makeNode(CustomScan);
  Plan* plan = &node->scan.plan;
  node->custom_scan_tlist = insert->plan.targetlist;  // of RETURNING
  for (auto* column : each<TargetEntry>(node->custom_scan_tlist)) {
    TargetEntry* passed_on = flatCopyTargetEntry(column);
    passed_on->expr = reinterpret_cast<Expr*>(makeVarFromTargetEntry(INDEX_VAR, column));
    plan->targetlist = lappend(plan->targetlist, passed_on);
  }
  plan->startup_cost = insert->plan.startup_cost;
  plan->total_cost = insert->plan.total_cost;
  plan->plan_rows = insert->plan.plan_rows;
  plan->plan_width = insert->plan.plan_width;
  plan->plan_node_id = insert->plan.plan_node_id;
  plan->extParam = bms_copy(insert->plan.extParam);
  plan->allParam = bms_copy(insert->plan.allParam);
  node->custom_plans = list_make1(insert);
  node->custom_private = list_make1(makeInteger(calls));
  if (obstacle != nullptr)
    node->custom_private = lappend(node->custom_private, makeString(pstrdup(obstacle)));
  node->methods = &kScanMethods;
  return plan;
}

void init_insert_node() { RegisterCustomScanMethods(&kScanMethods); }

// ---- planning -----------------------------------------------------------------------------------

namespace {

// ---- the query ---------------------------------------------------------------------------------

// Relevant contents of a query.
struct Contents {
  const Node* target;    // the entry of what it inserts into
  int calls;             // of streamfilter_seen()
  const char* obstacle;  // a function that could look at the table
};

// Volatile functions of PostgreSQL that look at no table.
bool is_blind(Oid function) {
  return function == F_NEXTVAL || function == F_CURRVAL || function == F_LASTVAL ||
         only_computes(function);
}

bool look_at_function(Oid function, void* context) {
  auto* contents = static_cast<Contents*>(context);
  if (contents->obstacle == nullptr && func_volatile(function) == PROVOLATILE_VOLATILE &&
      !is_blind(function))
    contents->obstacle = psprintf("function %s is volatile", get_func_name(function));
  return false;
}

bool is_filter_entry(const Node* node) {
  const auto* entry = reinterpret_cast<const RangeTblEntry*>(node);
  return entry->rtekind == RTE_RELATION && entry->relkind == RELKIND_FOREIGN_TABLE &&
         is_filter(entry->relid);
}

bool look_at_node(Node* node, void* context);

bool look_at_query(Query* query, Contents* contents) {
  return SF_WALK_QUERY(query, look_at_node, contents, QTW_EXAMINE_RTES_BEFORE);
}

bool look_at_node(Node* node, void* context) {
  auto* contents = static_cast<Contents*>(context);
  if (node == nullptr || IsA(node, Const) || IsA(node, Var)) return false;
  if (IsA(node, RangeTblEntry)) {
    if (node != contents->target && is_filter_entry(node))
      contents->obstacle = "the query reads a filter";
    return false;  // its parts are visited separately
  }
  if (IsA(node, Query)) return look_at_query(reinterpret_cast<Query*>(node), contents);
  if (IsA(node, FuncExpr) && is_seen_call(reinterpret_cast<FuncExpr*>(node))) {
    ++contents->calls;
  } else {
    check_functions_in_node(node, look_at_function, context);
    if (contents->obstacle == nullptr) contents->obstacle = find_hidden_code(node);
  }
  return SF_WALK_EXPRESSION(node, look_at_node, context);
}

// Does the INSERT have more than one row of values?
bool inserts_rows_of_query(const Query* query) {
  return query->commandType == CMD_INSERT && query->jointree->fromlist != NIL;
}

// Is RETURNING the same, if there is any, after later rows were inserted?
bool may_return_late(const Query* query) {
  auto* list = reinterpret_cast<Node*>(query->returningList);
  return list == nullptr ||
         !(checkExprHasSubLink(list) || SF_RETURNS_OLD_OR_NEW(list) || runs_volatile_code(list));
}

const char* find_obstacle(const Query* query, const Contents& contents) {
  // A filter that the query asks would remember a row that an index refuses.
  if (query->onConflict != nullptr &&
      (query->onConflict->action != ONCONFLICT_NOTHING || contents.calls > 0))
    return "it has an ON CONFLICT clause";
  if (query->querySource != QSRC_ORIGINAL) return "it was made by a rule";
  if (query->hasModifyingCTE) return "another part of the statement changes tables, too";
  if (query->withCheckOptions != NIL) return "each row is checked for row security or a view";
  return contents.obstacle;
}

// For a filter. Where something stands in the way, PostgreSQL's node inserts.
bool goes_in_batches(Query* query, Contents* contents) {
  look_at_query(query, contents);
  return contents->calls == 0 && query->onConflict == nullptr && query->returningList == NIL &&
         find_obstacle(query, *contents) == nullptr;
}

// Rows of a list of VALUES from which on a batch takes fewer instructions than its rows one by one:
// for repeats about 40, for new rows fewer. On other servers a batch saves messages.
constexpr int kBatchOfValues = 32;

// How many rows has the list of VALUES that is the source, which asks no filter? 0: it is none.
int rows_of_values(const Query* query) {
  if (list_length(query->rtable) != 2) return 0;
  const auto* source = lsecond_node(RangeTblEntry, query->rtable);
  return source->rtekind == RTE_VALUES ? list_length(source->values_lists) : 0;
}

// Should we decide how the rows are inserted?
bool concerns_us(Query* query, Contents* contents) {
  const RangeTblEntry* target = rt_fetch(query->resultRelation, query->rtable);
  contents->target = reinterpret_cast<const Node*>(target);
  if (is_filter_entry(contents->target)) return goes_in_batches(query, contents);
  if (target->relkind != RELKIND_RELATION && target->relkind != RELKIND_PARTITIONED_TABLE)
    return false;
  const int values = rows_of_values(query);
  if (values > 0 && values < kBatchOfValues && !has_connections()) return false;
  Relation table = table_open(target->relid, NoLock);
  // A copy: rebuilding the relation's cache entry frees the original.
  const TargetRule rule = find_trigger_rule(CopyTriggerDesc(table->trigdesc));
  table_close(table, NoLock);
  if (!rule.watched && (rule.obstacle != nullptr || values > 0 ||
                        !calls_seen(reinterpret_cast<Node*>(query), nullptr)))
    return false;
  if (!may_return_late(query)) return false;
  look_at_query(query, contents);
  return rule.watched || contents->calls > 0;
}

// A single row is no batch.
bool gives_many(const ModifyTable* insert) {
  const Plan* rows = outerPlan(insert);
  return !IsA(rows, Result) || outerPlan(rows) != nullptr;
}

}  // namespace

static pg_noinline PlannedStmt* plan_insert_of_rows(PlannerCall* call) {
  auto* query = call->get<Query*>();
  // Before planning, because the planner changes the query.
  Contents contents = {};
  const bool ours = concerns_us(query, &contents);
  const char* obstacle = ours ? find_obstacle(query, contents) : nullptr;
  PlannedStmt* statement = call->go_on();
  if (!ours || !IsA(statement->planTree, ModifyTable)) return statement;
  auto* insert = reinterpret_cast<ModifyTable*>(statement->planTree);
  if (gives_many(insert)) statement->planTree = make_insert_node(insert, contents.calls, obstacle);
  return statement;
}

PlannedStmt* plan_insert(PlannerCall* call) {
  const bool ours = batch_insert && inserts_rows_of_query(call->get<Query*>());
  return unlikely(ours) ? plan_insert_of_rows(call) : call->go_on();
}

}  // namespace streamfilter::pg
