// Functions of operator classes are not looked at: indexes call them with pages locked, so these
// cannot wait for other sessions anyway.
#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/lock.h"
#include "tcop/dest.h"
}

#include "pg/catalog/volatile_code.hpp"
#include "pg/handle/statement.hpp"
#include "pg/handle/waiting_code.hpp"
#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {
namespace {

// ---- expressions -------------------------------------------------------------------------------

// Functions of PostgreSQL that lock relations though they are not declared volatile: among those
// that describe objects, which ones do depends on the version.
bool locks_relations(const char* name) {
  return strncmp(name, "pg_get_", 7) == 0 || strstr(name, "_to_xml") != nullptr ||
         strstr(name, "_is_updatable") != nullptr || strcmp(name, "satisfies_hash_partition") == 0;
}

bool may_function_wait(Oid function, void*) {
  if (function >= FirstUnpinnedObjectId) return true;
  if (func_volatile(function) == PROVOLATILE_VOLATILE) return !only_computes(function);
  const char* name = get_func_name(function);
  return name == nullptr || locks_relations(name);
}

// Another session may have locked a sequence, unless this transaction has used it.
bool is_used_sequence(Oid sequence) {
  LOCKTAG tag;
  SET_LOCKTAG_RELATION(tag, MyDatabaseId, sequence);
  return SF_LOCK_HELD_BY_ME(&tag, RowExclusiveLock);
}

bool has_constant(const FuncExpr* call, Oid* value) {
  const auto* argument = static_cast<const Node*>(linitial(call->args));
  if (!IsA(argument, Const)) return false;
  const auto* constant = reinterpret_cast<const Const*>(argument);
  *value = constant->constisnull ? InvalidOid : DatumGetObjectId(constant->constvalue);
  return true;
}

// Does the call give keys to the filter alone? Others may be on other servers.
bool is_on_filter(const FuncExpr* call, Oid filter) {
  Oid given;
  return call->funcid >= FirstNormalObjectId && call->args != NIL &&
         (is_own_function(call->funcid, "streamfilter_seen") ||
          is_own_function(call->funcid, "streamfilter_warm")) &&
         has_constant(call, &given) && given == filter;
}

bool is_harmless_call(const Node* node, Oid filter) {
  if (!IsA(node, FuncExpr)) return false;
  const auto* call = reinterpret_cast<const FuncExpr*>(node);
  Oid sequence;
  if (call->funcid == F_NEXTVAL) return has_constant(call, &sequence) && is_used_sequence(sequence);
  return is_on_filter(call, filter);
}

// Functions that make values of a type call its input function, or check a domain.
bool makes_value_of_user_type(const Node* node) {
  switch (nodeTag(node)) {
    case T_FuncExpr:
    case T_CoerceViaIO:
    case T_ArrayCoerceExpr: return exprType(node) >= FirstUnpinnedObjectId;
    case T_CoerceToDomain: return true;
    default: return false;
  }
}

// `context`: the filter's OID.
bool may_node_wait(Node* node, void* context) {
  if (node == nullptr || IsA(node, Const) || IsA(node, Var)) return false;
  if (IsA(node, NextValueExpr))
    return !is_used_sequence(reinterpret_cast<const NextValueExpr*>(node)->seqid);
  if (!is_harmless_call(node, *static_cast<const Oid*>(context)) &&
      (makes_value_of_user_type(node) || check_functions_in_node(node, may_function_wait, nullptr)))
    return true;
  return SF_WALK_EXPRESSION(node, may_node_wait, context);
}

bool may_wait(const void* expressions, Oid filter) {
  return may_node_wait(static_cast<Node*>(const_cast<void*>(expressions)), &filter);
}

bool may_code_wait(Node* expression) { return may_wait(expression, InvalidOid); }

// ---- plans -------------------------------------------------------------------------------------

// What the node evaluates besides target list and qual.
bool may_parts_wait(const Plan* plan, Oid filter) {
  const auto look = [&](const auto*... parts) { return (may_wait(parts, filter) || ...); };
#define AS(type) reinterpret_cast<const type*>(plan)
  switch (nodeTag(plan)) {
    case T_Result: return look(AS(Result)->resconstantqual);
    case T_ModifyTable: return look(AS(ModifyTable)->withCheckOptionLists);
    case T_SampleScan: return look(AS(SampleScan)->tablesample);
    case T_IndexScan: return look(AS(IndexScan)->indexqual, AS(IndexScan)->indexorderby);
    case T_IndexOnlyScan:
      return look(AS(IndexOnlyScan)->indexqual, AS(IndexOnlyScan)->indexorderby);
    case T_BitmapIndexScan: return look(AS(BitmapIndexScan)->indexqual);
    case T_BitmapHeapScan: return look(AS(BitmapHeapScan)->bitmapqualorig);
    case T_TidScan: return look(AS(TidScan)->tidquals);
    case T_TidRangeScan: return look(AS(TidRangeScan)->tidrangequals);
    case T_FunctionScan: return look(AS(FunctionScan)->functions);
    case T_TableFuncScan: return look(AS(TableFuncScan)->tablefunc);
    case T_ValuesScan: return look(AS(ValuesScan)->values_lists);
    case T_ForeignScan: return look(AS(ForeignScan)->fdw_exprs);
    case T_CustomScan: return look(AS(CustomScan)->custom_exprs);
    case T_NestLoop: return look(AS(NestLoop)->join.joinqual);
    case T_MergeJoin: return look(AS(MergeJoin)->join.joinqual, AS(MergeJoin)->mergeclauses);
    case T_HashJoin: return look(AS(HashJoin)->join.joinqual, AS(HashJoin)->hashclauses);
    case T_Memoize: return look(AS(Memoize)->param_exprs);
    case T_WindowAgg: return look(AS(WindowAgg)->startOffset, AS(WindowAgg)->endOffset);
    case T_Limit: return look(AS(Limit)->limitOffset, AS(Limit)->limitCount);
    default: return false;
  }
#undef AS
}

bool is_own_node(const Plan* plan, const char* name) {
  return IsA(plan, CustomScan) &&
         reinterpret_cast<const CustomScan*>(plan)->methods->CustomName == name;
}

// Is it a node of another extension, or one that asks another filter?
bool is_foreign_node(const Plan* plan, Oid filter) {
  if (!IsA(plan, CustomScan)) return false;
  if (const Const* asked = filter_of_batch_scan(plan))
    return DatumGetObjectId(asked->constvalue) != filter;
  return !is_own_node(plan, kInsertNode);
}

// `context`: the filter's OID.
bool may_plan_wait(PlanState* state, void* context) {
  if (state == nullptr) return false;
  check_stack_depth();
  const Plan* plan = state->plan;
  const Oid filter = *static_cast<const Oid*>(context);
  return is_foreign_node(plan, filter) || may_wait(plan->targetlist, filter) ||
         may_wait(plan->qual, filter) || may_parts_wait(plan, filter) ||
         SF_WALK_PLANSTATE(state, may_plan_wait, context);
}

bool reads_elsewhere(const PlannedStmt* statement, Oid filter) {
  for (const auto* entry : each<RangeTblEntry>(statement->rtable)) {
    if (entry->rtekind == RTE_RELATION && entry->relkind == RELKIND_FOREIGN_TABLE &&
        entry->relid != filter)
      return true;
  }
  return false;
}

// ---- the table ---------------------------------------------------------------------------------

bool is_unique(Oid index) {
  bool unique = true;
  read_catalog<FormData_pg_index>(INDEXRELID, index, [&](const auto& row, HeapTuple) {
    unique = row.indisunique || row.indisexclusion;
  });
  return unique;
}

bool has_unique_index(Relation table) {
  List* indexes = RelationGetIndexList(table);
  bool found = false;
  for (const Oid index : each_oid(indexes)) found = found || is_unique(index);
  list_free(indexes);
  return found;
}

// Foreign keys are triggers, too.
bool has_trigger(const TriggerDesc* triggers) {
  return triggers != nullptr && triggers->numtriggers > 0;
}

// Triggers of the table that gives the filter its keys.
bool may_trigger_wait(const TriggerDesc* triggers) {
  if (triggers == nullptr || triggers->numtriggers != 1) return true;
  const char* condition = triggers->triggers[0].tgqual;
  return condition != nullptr && may_code_wait(static_cast<Node*>(stringToNode(condition)));
}

// COPY evaluates defaults, and calls the input functions of types.
bool may_copying_wait(TupleDesc columns) {
  for (int i = 0; i < columns->natts; ++i)
    if (TupleDescAttr(columns, i)->atttypid >= FirstUnpinnedObjectId) return true;
  const TupleConstr* constraints = columns->constr;
  for (int i = 0; constraints != nullptr && i < constraints->num_defval; ++i)
    if (may_code_wait(static_cast<Node*>(stringToNode(constraints->defval[i].adbin)))) return true;
  return false;
}

// A partition is locked at its first row.
bool may_row_wait(Relation table, const FilterHandle* filter, bool copied) {
  const Oid relid = RelationGetRelid(table);
  const KeyRoute& route = filter->route;
  const bool own = route.way == KeyRoute::trigger && route.table == relid;
  if (own ? may_trigger_wait(route.triggers) : has_trigger(table->trigdesc)) return true;
  if (table->rd_rel->relispartition || (copied && may_copying_wait(RelationGetDescr(table))))
    return true;
  if (relid == filter->relid) return runs_code_for_rows(table, may_code_wait);
  return table->rd_rel->relkind != RELKIND_RELATION ||
         table->rd_tableam != GetHeapamTableAmRoutine() || has_unique_index(table) ||
         runs_code_for_rows(table, may_code_wait);
}

bool may_row_wait(Oid relid, const FilterHandle* filter, bool copied) {
  Relation table = table_open(relid, NoLock);
  const bool waits = may_row_wait(table, filter, copied);
  table_close(table, NoLock);
  return waits;
}

// ---- statements --------------------------------------------------------------------------------

// Does a client get no row before the last is made?
bool keeps_rows(const QueryDesc* query) {
  switch (query->dest->mydest) {
    case DestNone:
    case DestIntoRel: return true;
    default: break;
  }
  const Plan* plan = query->plannedstmt->planTree;
  return IsA(plan, Result) && outerPlan(plan) == nullptr;
}

// RETURNING may wait for a client that reads its rows slowly: they are sent before the commit, also
// where a store takes all of them first.
bool may_insert_wait(const PlannedStmt* statement, const FilterHandle* filter) {
  for (int index = -1; (index = SF_NEXT_RESULT_RELATION(statement, index)) >= 0;)
    if (may_row_wait(rt_fetch(index, statement->rtable)->relid, filter, false)) return true;
  return statement->hasReturning;
}

bool may_copy_wait(const Copied* copy, const FilterHandle* filter) {
  if (copy->pauses || copy->chooses) return true;
  switch (filter->route.way) {
    case KeyRoute::trigger: return may_row_wait(filter->route.table, filter, true);
    case KeyRoute::insert: return may_row_wait(filter->relid, filter, true);
    default: return true;
  }
}

// The statement that gives the keys.
bool may_innermost_wait(const Frame* frame, const FilterHandle* filter) {
  if (frame->copy != nullptr) return may_copy_wait(frame->copy, filter);
  if (frame->query == nullptr) return true;
  const PlannedStmt* statement = frame->query->plannedstmt;
  switch (statement->commandType) {
    case CMD_INSERT:
      if (may_insert_wait(statement, filter)) return true;
      break;
    case CMD_SELECT:
      if (filter->route.way != KeyRoute::query || !keeps_rows(frame->query)) return true;
      break;
    default: return true;
  }
  return may_query_wait(frame->query, filter->relid);
}

// A statement that does nothing else while it runs another one.
bool only_runs_another(const Frame* frame) {
  const Node* statement = frame->statement;
  return statement != nullptr && (IsA(statement, CreateTableAsStmt) ||
                                  IsA(statement, ExplainStmt) || IsA(statement, ExecuteStmt));
}

}  // namespace

const Const* filter_of_batch_scan(const Plan* plan) {
  if (!is_own_node(plan, kBatchNode)) return nullptr;
  return linitial_node(Const, reinterpret_cast<const CustomScan*>(plan)->custom_private);
}

bool may_query_wait(const QueryDesc* query, Oid filter) {
  const PlannedStmt* statement = query->plannedstmt;
  return statement->rowMarks != NIL || statement->hasModifyingCTE ||
         reads_elsewhere(statement, filter) || may_plan_wait(query->planstate, &filter);
}

// Rows that come without a statement are those of a replication worker.
bool may_statement_wait(const FilterHandle* filter) {
  const Frame* frame = innermost_frame();
  if (frame == nullptr || filter->route.way == KeyRoute::unknown ||
      may_innermost_wait(frame, filter))
    return true;
  for (frame = frame->below; frame != nullptr; frame = frame->below)
    if (!only_runs_another(frame)) return true;
  return false;
}

}  // namespace streamfilter::pg
