#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/trigger.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/volatile_code.hpp"
#include "pg/fdw/batch_scan.hpp"
#include "pg/ingest/insert_node.hpp"
#include "pg/ingest/insert_plan.hpp"
#include "pg/ingest/target_rule.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
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
  return query->commandType == CMD_INSERT && query->jointree->fromlist != NIL &&
         query->returningList == NIL;
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
  return contents->calls == 0 && query->onConflict == nullptr &&
         find_obstacle(query, *contents) == nullptr;
}

// Is the source a list of VALUES? No scan asks a filter for its rows.
bool is_list_of_values(const Query* query) {
  return list_length(query->rtable) == 2 &&
         lsecond_node(RangeTblEntry, query->rtable)->rtekind == RTE_VALUES;
}

// Should we decide how the rows are inserted?
bool concerns_us(Query* query, Contents* contents) {
  const RangeTblEntry* target = rt_fetch(query->resultRelation, query->rtable);
  contents->target = reinterpret_cast<const Node*>(target);
  if (is_filter_entry(contents->target)) return goes_in_batches(query, contents);
  if (target->relkind != RELKIND_RELATION && target->relkind != RELKIND_PARTITIONED_TABLE)
    return false;
  Relation table = table_open(target->relid, NoLock);
  // A copy: rebuilding the relation's cache entry frees the original.
  const TargetRule rule = find_trigger_rule(CopyTriggerDesc(table->trigdesc));
  table_close(table, NoLock);
  if (!rule.watched && (rule.obstacle != nullptr || is_list_of_values(query))) return false;
  look_at_query(query, contents);
  return rule.watched || contents->calls > 0;
}

// A single row is no batch.
bool gives_many(const ModifyTable* insert) {
  const Plan* rows = outerPlan(insert);
  return !IsA(rows, Result) || outerPlan(rows) != nullptr;
}

}  // namespace

namespace {

pg_noinline PlannedStmt* plan_insert_of_rows(PlannerCall* call) {
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

}  // namespace

PlannedStmt* plan_insert(PlannerCall* call) {
  const bool ours = batch_insert && inserts_rows_of_query(call->get<Query*>());
  return unlikely(ours) ? plan_insert_of_rows(call) : call->go_on();
}

}  // namespace streamfilter::pg
