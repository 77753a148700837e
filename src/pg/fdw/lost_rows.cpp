// Walks down the finished plan and tracks what happens to a node's rows above it. Above a node that
// passes only rows which a filter has not seen, nothing may remove rows.
#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
}

#include "pg/fdw/batch_scan_plan.hpp"
#include "pg/fdw/lost_rows.hpp"
#include "pg/handle/waiting_code.hpp"

namespace streamfilter::pg {
namespace {

enum class Loss : uint8 {
  none,
  limit,
  distinct,
  aggregate,
  join,
  condition,
  set_operation,
  subquery,
  skip_locked,
  explain,
};

// What happens to a node's rows above it.
struct Above {
  Loss rows;      // to rows that have passed a condition on a filter
  Loss verdicts;  // to rows that carry a filter's answer, which the query may look at itself
  bool limited;   // no more rows are asked for than needed
};

struct LossSearch {
  const PlannedStmt* statement;
  Above* uses;  // for each subplan: the use that keeps most of its rows
  bool* used;
  Loss loss;  // the first loss found
  const Node* filter;
};

// ---- expressions -------------------------------------------------------------------------------

struct Expression {
  LossSearch* search;
  const Node* filter;  // first argument of a call in it
};

bool keeps_more(const Above& one, const Above& other) {
  if ((one.rows == Loss::none) != (other.rows == Loss::none)) return one.rows == Loss::none;
  return !one.limited && other.limited;
}

void note_use(LossSearch* search, int plan_id, const Above& above) {
  const int i = plan_id - 1;
  if (!search->used[i] || keeps_more(above, search->uses[i])) search->uses[i] = above;
  search->used[i] = true;
}

void note_subplan(LossSearch* search, const SubPlan* subplan) {
  if (subplan->subLinkType == CTE_SUBLINK) return;  // its scans decide
  const bool looks_only = subplan->subLinkType == EXISTS_SUBLINK ||
                          subplan->subLinkType == ANY_SUBLINK ||
                          subplan->subLinkType == ALL_SUBLINK;
  note_use(search, subplan->plan_id, {looks_only ? Loss::subquery : Loss::none, Loss::none, false});
}

bool find_call(Node* node, void* context) {
  auto* expression = static_cast<Expression*>(context);
  if (node == nullptr) return false;
  if (IsA(node, SubPlan)) note_subplan(expression->search, castNode(SubPlan, node));
  if (IsA(node, FuncExpr) && is_seen_call(castNode(FuncExpr, node)))
    expression->filter = static_cast<const Node*>(linitial(castNode(FuncExpr, node)->args));
  return SF_WALK_EXPRESSION(node, find_call, context);
}

// The filter that the expression asks.
const Node* filter_in(LossSearch* search, Node* node) {
  Expression expression = {search, nullptr};
  find_call(node, &expression);
  return expression.filter;
}

void note_loss(LossSearch* search, Loss loss, const Node* filter) {
  if (loss == Loss::none || search->loss != Loss::none) return;
  search->loss = loss;
  search->filter = filter;
}

// `WHERE streamfilter_seen(…)` asks for the repeats.
void look_at_conditions(LossSearch* search, const List* conditions, const Above& above) {
  for (int i = 0; i < list_length(conditions); ++i) {
    auto* condition = static_cast<Node*>(list_nth(conditions, i));
    const Node* filter = filter_in(search, condition);
    if (filter == nullptr || IsA(condition, FuncExpr)) continue;
    note_loss(search, above.rows, filter);
    // Conditions are evaluated in this order.
    if (i + 1 < list_length(conditions)) note_loss(search, Loss::condition, filter);
  }
}

// ---- nodes -------------------------------------------------------------------------------------

Above lose(Loss loss, const Above& above) {
  const bool looked_at = loss == Loss::aggregate || loss == Loss::distinct ||
                         loss == Loss::condition || loss == Loss::set_operation;
  return {loss, looked_at ? above.verdicts : loss, false};
}

// The node reads all rows before it returns the first.
Above all_at_once(const Above& above) { return above.limited ? lose(Loss::limit, above) : above; }

Above above_of_limit(const Limit* limit, const Above& above) {
  if (limit->limitOffset != nullptr) return lose(Loss::limit, above);
  Above below = above;
  below.limited = below.limited || limit->limitCount != nullptr;
  return below;
}

Above above_of_locks(const LockRows* locks, const Above& above) {
  ListCell* cell;
  foreach (cell, locks->rowMarks)
    if (lfirst_node(PlanRowMark, cell)->waitPolicy == LockWaitSkip)
      return lose(Loss::skip_locked, above);
  return above;
}

// What happens to the rows of the plan below (of the first one, for a join).
Above above_of_child(const Plan* plan, const Above& above) {
  switch (nodeTag(plan)) {
    case T_ModifyTable: return {};
    case T_Limit: return above_of_limit(reinterpret_cast<const Limit*>(plan), above);
    case T_LockRows: return above_of_locks(reinterpret_cast<const LockRows*>(plan), above);
    case T_Unique:
    case T_Group: return lose(Loss::distinct, above);
    case T_Agg:
      return lose(contain_agg_clause(reinterpret_cast<Node*>(plan->targetlist)) ? Loss::aggregate
                                                                                : Loss::distinct,
                  above);
    case T_SetOp: return lose(Loss::set_operation, above);
    case T_RecursiveUnion:
      return reinterpret_cast<const RecursiveUnion*>(plan)->numCols > 0
                 ? lose(Loss::set_operation, above)
                 : above;
    case T_WindowAgg:
      if (plan->qual != NIL || reinterpret_cast<const WindowAgg*>(plan)->runCondition != NIL)
        return lose(Loss::condition, above);
      return all_at_once(above);
    default: break;
  }
  if (plan->qual != NIL && (plan->lefttree != nullptr || !IsA(plan, CustomScan)))
    return lose(Loss::condition, above);
  return IsA(plan, Sort) || IsA(plan, IncrementalSort) || IsA(plan, Hash) || IsA(plan, MergeAppend)
             ? all_at_once(above)
             : above;
}

// Does each row of that side leave the join at least once?
bool keeps_outer(JoinType type) { return type == JOIN_LEFT || type == JOIN_FULL; }
bool keeps_inner(JoinType type) { return type == JOIN_RIGHT || type == JOIN_FULL; }

void visit(LossSearch* search, const Plan* plan, const Above& above);

void visit_join(LossSearch* search, const Join* join, const Above& above) {
  look_at_conditions(search, join->joinqual, above);
  const Above kept = join->plan.qual == NIL ? above : lose(Loss::condition, above);
  const Above lost = lose(Loss::join, above);
  visit(search, join->plan.lefttree, keeps_outer(join->jointype) ? kept : lost);
  visit(search, join->plan.righttree, keeps_inner(join->jointype) ? kept : lost);
}

void visit_list(LossSearch* search, const List* plans, const Above& above) {
  ListCell* cell;
  foreach (cell, plans) visit(search, static_cast<const Plan*>(lfirst(cell)), above);
}

void look_at_node(LossSearch* search, const Plan* plan, const Above& above) {
  // At most one row is never too many.
  const bool single = IsA(plan, Result) && plan->lefttree == nullptr;
  const bool harmless =
      single && (above.rows == Loss::limit || above.rows == Loss::subquery || above.limited);
  const Above here = harmless ? Above{} : above;
  look_at_conditions(search, plan->qual, here);
  const Node* filter = filter_in(search, reinterpret_cast<Node*>(plan->targetlist));
  if (filter != nullptr && !IsA(plan, Agg)) note_loss(search, here.verdicts, filter);
  if (const Const* asked = filter_of_batch_scan(plan))
    note_loss(search, here.rows, reinterpret_cast<const Node*>(asked));
  ListCell* cell;
  foreach (cell, plan->initPlan) note_subplan(search, lfirst_node(SubPlan, cell));
}

void visit(LossSearch* search, const Plan* plan, const Above& above) {
  if (plan == nullptr) return;
  check_stack_depth();
  look_at_node(search, plan, above);
  const Above below = above_of_child(plan, above);
  switch (nodeTag(plan)) {
    case T_NestLoop:
    case T_HashJoin:
    case T_MergeJoin: return visit_join(search, reinterpret_cast<const Join*>(plan), above);
    case T_Append:
      visit_list(search, reinterpret_cast<const Append*>(plan)->appendplans, below);
      break;
    case T_MergeAppend:
      visit_list(search, reinterpret_cast<const MergeAppend*>(plan)->mergeplans, below);
      break;
    case T_SubqueryScan:
      visit(search, reinterpret_cast<const SubqueryScan*>(plan)->subplan, below);
      break;
    case T_CustomScan:
      visit_list(search, reinterpret_cast<const CustomScan*>(plan)->custom_plans, below);
      break;
    case T_CteScan:
      note_use(search, reinterpret_cast<const CteScan*>(plan)->ctePlanId, below);
      break;
    default: break;
  }
  visit(search, plan->lefttree, below);
  visit(search, plan->righttree, below);
}

// The query, and later subplans in the list, use a subplan.
void search_statement(LossSearch* search, Loss loss) {
  const List* subplans = search->statement->subplans;
  visit(search, search->statement->planTree, {loss, Loss::none, false});
  for (int i = list_length(subplans) - 1; i >= 0; --i)
    visit(search, static_cast<const Plan*>(list_nth(subplans, i)), search->uses[i]);
}

// ---- the warning -------------------------------------------------------------------------------

const char* loss_name(Loss loss) {
  switch (loss) {
    case Loss::limit: return "LIMIT or OFFSET leaves out rows";
    case Loss::distinct: return "DISTINCT, GROUP BY or UNION leaves out rows";
    case Loss::aggregate: return "An aggregate takes in rows";
    case Loss::join: return "A join leaves out rows without a partner, or reads them again,";
    case Loss::condition: return "Another condition leaves out rows";
    case Loss::set_operation: return "UNION, INTERSECT or EXCEPT leaves out rows";
    case Loss::subquery: return "EXISTS, IN or ANY only looks at rows";
    case Loss::skip_locked: return "SKIP LOCKED leaves out rows";
    case Loss::explain: return "EXPLAIN ANALYZE gives out no rows";
    case Loss::none: break;
  }
  return "";
}

void warn(const LossSearch* search) {
  const Node* filter = search->filter;
  const char* name =
      IsA(filter, Const) && !reinterpret_cast<const Const*>(filter)->constisnull
          ? get_rel_name(DatumGetObjectId(reinterpret_cast<const Const*>(filter)->constvalue))
          : nullptr;
  ereport(
      WARNING, errcode(ERRCODE_WARNING),
      name != nullptr ? errmsg("query may discard rows that filter \"%s\" remembers", name)
                      : errmsg("query may discard rows that a filter remembers"),
      errdetail("%s after streamfilter_seen() has remembered them; from then on they are repeats.",
                loss_name(search->loss)),
      search->loss == Loss::aggregate
          ? errhint("Store the rows in the same statement: WITH new AS MATERIALIZED (SELECT ... "
                    "WHERE NOT streamfilter_seen(...)), stored AS (INSERT INTO ... SELECT * FROM "
                    "new) SELECT ... FROM new. To count only, use streamfilter_test().")
          : errhint("Choose the rows first, and ask the filter then: WITH new AS MATERIALIZED "
                    "(SELECT ...) SELECT * FROM new WHERE NOT streamfilter_seen(...)."));
}

void look_at_statement(const PlannedStmt* statement, Loss loss) {
  const int subplans = Max(list_length(statement->subplans), 1);
  LossSearch search = {};
  search.statement = statement;
  search.uses = static_cast<Above*>(palloc0(sizeof(Above) * subplans));
  search.used = static_cast<bool*>(palloc0(sizeof(bool) * subplans));
  search_statement(&search, loss);
  pfree(search.uses);
  pfree(search.used);
  if (search.loss != Loss::none) warn(&search);
}

// ---- steps of hooks ----------------------------------------------------------------------------

// EXPLAIN of a query: not executed, or executed without returning rows.
enum class Explained : uint8 { no, plan, run };
Explained explained = Explained::no;

// A plan of EXPLAIN EXECUTE may be kept; EXPLAIN CREATE TABLE AS stores its rows.
Explained how_explained(const Node* statement) {
  if (!IsA(statement, ExplainStmt)) return Explained::no;
  const auto* explain = reinterpret_cast<const ExplainStmt*>(statement);
  const auto* query = castNode(Query, explain->query);
  const bool is_query = query->commandType != CMD_UTILITY;
  if (!is_query && IsA(query->utilityStmt, ExecuteStmt)) return Explained::no;
  ListCell* cell;
  foreach (cell, explain->options) {
    auto* option = lfirst_node(DefElem, cell);
    if (strcmp(option->defname, "analyze") == 0 && defGetBoolean(option))
      return is_query ? Explained::run : Explained::no;
  }
  return Explained::plan;
}

pg_noinline void look_at_statement(const PlannedStmt* statement) {
  const bool gives_rows = statement->commandType == CMD_SELECT && explained == Explained::run;
  if (explained != Explained::plan && statement->planTree != nullptr)
    look_at_statement(statement, gives_rows ? Loss::explain : Loss::none);
}

pg_noinline void set_explained(Explained value) { explained = value; }

}  // namespace

PlannedStmt* look_for_lost_rows(PlannerCall* call) {
  PlannedStmt* statement = call->go_on();
  // A plan lists the functions that are not PostgreSQL's own.
  if (unlikely(statement->invalItems != NIL)) look_at_statement(statement);
  return statement;
}

// A statement within one that EXPLAIN ANALYZE runs is not explained itself.
void note_explain(UtilityCall* call) {
  const Explained before = explained;
  const Explained within = how_explained(statement_of(call));
  if (within == before) return call->go_on();
  set_explained(within);
  PG_TRY();
  { call->go_on(); }
  PG_FINALLY();
  { set_explained(before); }
  PG_END_TRY();
}

}  // namespace streamfilter::pg
