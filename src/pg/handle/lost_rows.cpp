// Walks down the finished plan and tracks what happens to a node's rows above it. Above a node that
// passes only rows which a filter has not seen, nothing may remove rows. A question in a target
// list is a verdict: its rows may be removed by a condition on the verdict alone.
//
// After a wait for a row lock, PostgreSQL evaluates the plan below LockRows, UPDATE, DELETE and
// MERGE again for the row's new version (EvalPlanQual). Scans of subqueries, CTEs, functions and
// VALUES then give the row that they gave before, and initial plans keep their values: what these
// ask is asked once.
#include "pg/server/postgres.hpp"

extern "C" {
#include "optimizer/clauses.h"
#include "utils/fmgroids.h"
}

#include "pg/handle/lost_rows.hpp"
#include "pg/handle/waiting_code.hpp"
#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {
namespace {

// How plans list streamfilter_seen() among their functions; 0: no plan has.
uint32 seen_hash = 0;

template <typename T>
const T* as(const void* node) {
  return static_cast<const T*>(node);
}

// What happens to a node's rows above it.
struct Above {
  Loss rows;             // to rows that have passed a condition on a filter
  Loss verdicts;         // to rows that carry a filter's answer, which the query may look at itself
  bool limited = false;  // no more rows are asked for than needed
  bool rechecked = false;  // its expressions are evaluated again after a wait for a lock
  bool once = false;       // the node is evaluated once
  bool several = false;    // it is one of several nodes, or evaluated several times
  bool unsure = false;     // it may not be evaluated at all
  bool decides = false;    // an expression, which is evaluated for rows, looks at its rows
};

struct Subplan {
  Above above;         // what becomes of its rows
  bool used;           // known by a scan of it
  bool init;           // an initial plan
  int param;           // its first result, if so
  bool kept;           // a use gives out all rows, or all of those that its verdicts call new
  Loss lost;           // by another use
  const Node* filter;  // of that loss
};

struct LossSearch {
  const PlannedStmt* statement;
  bool hidden;           // as in PlanView
  bool locks;            // some rows are rechecked
  Subplan* subplans;     // by number
  const char* function;  // a hidden one, found last
  LostRows found;
};

void note_loss(LossSearch* search, Loss loss, const Node* filter) {
  const bool worse = loss == Loss::recheck && search->found.loss != Loss::recheck;
  if (loss == Loss::none || (search->found.loss != Loss::none && !worse)) return;
  search->found = {search->found.asks, loss, filter, search->function};
}

// ---- subplans -----------------------------------------------------------------------------------

bool keeps_all(const Above& use) { return use.rows == Loss::none && !use.limited && !use.unsure; }

// Rows that one use gives out are not lost by another.
void note_use(Subplan* subplan, const Above& use) {
  Above* known = &subplan->above;
  if (!subplan->used || keeps_all(use)) *known = use;
  subplan->used = true;
  if (keeps_all(*known)) return;
  if (known->rows == Loss::none) known->rows = use.rows;
  known->limited = known->limited || use.limited;
  if (use.verdicts == Loss::none) known->verdicts = Loss::none;
}

// ---- questions ----------------------------------------------------------------------------------

struct Question {
  LossSearch* search;
  const Plan* plan;    // the expression's
  const Node* whole;   // the expression, without casts
  bool found;          // here, or where a column comes from
  bool here;           // by a call in the expression itself
  bool bare;           // it is nothing but the answer: a verdict
  const Node* filter;  // first argument of the call
  int cte;             // a column of this subplan has the answer; 0: none
  bool aggregated;     // an aggregate takes in the answer
};

bool find_question(Node* node, void* context);

Question question_in(LossSearch* search, const Plan* plan, const void* expression) {
  auto* node = static_cast<Node*>(const_cast<void*>(expression));
  while (node != nullptr && IsA(node, FuncExpr) && as<FuncExpr>(node)->args != NIL &&
         as<FuncExpr>(node)->funcformat != COERCE_EXPLICIT_CALL)
    node = static_cast<Node*>(linitial(as<FuncExpr>(node)->args));
  Question question = {search, plan, node, false, false, false, nullptr, 0, false};
  find_question(node, &question);
  return question;
}

// The plans that a node passes on rows of, besides its left and right ones.
const List* parts_of(const Plan* plan) {
  switch (nodeTag(plan)) {
    case T_Append: return as<Append>(plan)->appendplans;
    case T_MergeAppend: return as<MergeAppend>(plan)->mergeplans;
    case T_CustomScan: return as<CustomScan>(plan)->custom_plans;
    default: return NIL;
  }
}

void follow_column(Question* question, const Var* column, const void* below) {
  if (below == nullptr) return;
  const TargetEntry* entry = get_tle_by_resno(as<Plan>(below)->targetlist, column->varattno);
  if (entry == nullptr) return;
  const Question source = question_in(question->search, as<Plan>(below), entry->expr);
  if (!source.found) return;
  question->found = true;
  question->bare = source.bare && question->whole == as<Node>(column);
  question->filter = source.filter;
  question->cte = source.cte;
}

// What gives the column its value in the nodes below?
void follow_column(Question* question, const Var* column) {
  const Plan* plan = question->plan;
  for (const auto* part : each<Plan>(parts_of(plan))) follow_column(question, column, part);
  if (column->varno == OUTER_VAR) return follow_column(question, column, plan->lefttree);
  if (column->varno == INNER_VAR) return follow_column(question, column, plan->righttree);
  if (IsA(plan, SubqueryScan))
    return follow_column(question, column, as<SubqueryScan>(plan)->subplan);
  if (!IsA(plan, CteScan)) return;
  const int cte = as<CteScan>(plan)->ctePlanId;
  follow_column(question, column, list_nth(question->search->statement->subplans, cte - 1));
  if (question->found) question->cte = cte;
}

bool is_opaque_function(Oid function, void* context) {
  if (is_trusted_function(function)) return false;
  static_cast<LossSearch*>(context)->function = get_func_name(function);
  return true;
}

// A domain's CHECK is not in the plan.
bool asks(LossSearch* search, Node* node) {
  if (search->hidden && IsA(node, CoerceToDomain) &&
      SF_DOMAIN_HAS_CONSTRAINTS(as<CoerceToDomain>(node)->resulttype)) {
    search->function = format_type_be(as<CoerceToDomain>(node)->resulttype);
    return true;
  }
  if (search->hidden) return check_functions_in_node(node, is_opaque_function, search);
  return IsA(node, FuncExpr) && is_seen_call(as<FuncExpr>(node));
}

// An initial plan of one row that asks: what looks at its result decides about a row.
void follow_param(Question* question, const Param* param) {
  const List* plans = question->search->statement->subplans;
  for (int i = 1; param->paramkind == PARAM_EXEC && i <= list_length(plans); ++i) {
    const Subplan& subplan = question->search->subplans[i];
    const auto* plan = as<Plan>(list_nth(plans, i - 1));
    if (!subplan.init || subplan.param != param->paramid || !IsA(plan, Result)) continue;
    const Question inside = question_in(question->search, plan, plan->targetlist);
    const Question tested = question_in(question->search, plan, plan->qual);
    question->found = question->found || inside.found || tested.found;
    if (question->filter == nullptr)
      question->filter = inside.found ? inside.filter : tested.filter;
  }
}

// What an aggregate takes in leaves it as something else: nobody has asked there.
void look_into_aggregate(Question* question, const Aggref* aggregate) {
  Question inside = *question;
  inside.whole = nullptr;
  SF_WALK_EXPRESSION(static_cast<Node*>(const_cast<void*>(as<void>(aggregate))), find_question,
                     &inside);
  if (!inside.found || question->found) return;
  question->found = question->aggregated = true;
  question->filter = inside.filter;
  question->cte = inside.cte;
}

bool find_question(Node* node, void* context) {
  auto* question = static_cast<Question*>(context);
  if (node == nullptr) return false;
  if (IsA(node, Aggref)) {
    look_into_aggregate(question, as<Aggref>(node));
    return false;
  }
  if (IsA(node, Var)) follow_column(question, as<Var>(node));
  if (IsA(node, Param)) follow_param(question, as<Param>(node));
  if (asks(question->search, node)) {
    question->found = question->here = true;
    question->bare = node == question->whole;
    if (!question->search->hidden) question->filter = as<Node>(linitial(as<FuncExpr>(node)->args));
  }
  return SF_WALK_EXPRESSION(node, find_question, context);
}

// ---- conditions ---------------------------------------------------------------------------------

// Which rows pass a condition?
enum class Passing : uint8 {
  any,      // it asks nothing
  repeats,  // `WHERE streamfilter_seen(…)` asks for these
  news,     // all new ones, at least
  unknown,
};

Passing passing(LossSearch* search, const Plan* plan, Node* node);

Passing inverted(Passing rows) {
  return rows == Passing::repeats ? Passing::news : rows == Passing::news ? Passing::repeats : rows;
}

// OR passes what one of its arguments passes; after AND's question no other argument may follow.
Passing passing_bool(LossSearch* search, const Plan* plan, const BoolExpr* condition) {
  if (condition->boolop == NOT_EXPR)
    return inverted(passing(search, plan, static_cast<Node*>(linitial(condition->args))));
  Passing result = Passing::any;
  for (auto* node : each<Node>(condition->args)) {
    const Passing rows = passing(search, plan, node);
    if (condition->boolop == AND_EXPR && result != Passing::any) return Passing::unknown;
    if (rows == Passing::any) continue;
    if (rows != Passing::news) return Passing::unknown;
    result = rows;
  }
  return result;
}

Passing passing(LossSearch* search, const Plan* plan, Node* node) {
  const Question question = question_in(search, plan, node);
  if (!question.found) return Passing::any;
  if (search->hidden) return question.aggregated ? Passing::unknown : Passing::news;
  if (question.bare) return Passing::repeats;
  if (IsA(node, BoolExpr)) return passing_bool(search, plan, reinterpret_cast<BoolExpr*>(node));
  if (!IsA(node, BooleanTest)) return Passing::unknown;
  const auto* test = as<BooleanTest>(node);
  const Passing tested = passing(search, plan, reinterpret_cast<Node*>(test->arg));
  switch (test->booltesttype) {
    case IS_TRUE:
    case IS_NOT_FALSE: return tested;
    case IS_FALSE:
    case IS_NOT_TRUE: return inverted(tested);
    default: return Passing::unknown;
  }
}

void note_question(LossSearch* search, const Question& question, const Above& above) {
  search->found.asks = true;
  if (search->found.filter == nullptr) search->found.filter = question.filter;
  if (question.here && above.rechecked) note_loss(search, Loss::recheck, question.filter);
}

// Rows of a subplan that this use loses may be kept by another.
void note_loss(LossSearch* search, Loss loss, const Question& question) {
  Subplan* cte = question.cte == 0 || question.here ? nullptr : &search->subplans[question.cte];
  if (cte == nullptr) return note_loss(search, loss, question.filter);
  if (cte->lost != Loss::none) return;
  cte->lost = loss;
  cte->filter = question.filter;
}

void look_at_conditions(LossSearch* search, const Plan* plan, const List* conditions,
                        const Above& above) {
  for (int i = 0; i < list_length(conditions); ++i) {
    auto* condition = static_cast<Node*>(list_nth(conditions, i));
    const Question question = question_in(search, plan, condition);
    if (!question.found) continue;
    note_question(search, question, above);
    const Passing rows = passing(search, plan, condition);
    if (rows == Passing::unknown) note_loss(search, Loss::expression, question);
    // What looks at the rows that are left decides about the others.
    if (rows == Passing::repeats && above.decides) note_loss(search, Loss::subquery, question);
    if (rows != Passing::news) continue;
    note_loss(search, above.rows, question);
    // Conditions are evaluated in this order, and a batch scan's own question at last.
    const bool last = i + 1 == list_length(conditions);
    if (last && (!search->hidden || filter_of_batch_scan(plan) == nullptr)) continue;
    const bool asks = !last && question_in(search, plan, list_nth(conditions, i + 1)).found;
    note_loss(search, asks ? Loss::filters : Loss::condition, question);
  }
}

// ---- what happens to rows -----------------------------------------------------------------------

Above lose(Loss loss, const Above& above) {
  const bool looked_at = loss == Loss::aggregate || loss == Loss::distinct;
  Above below = above;
  below.rows = loss;
  if (!looked_at) below.verdicts = loss;
  below.limited = below.once = false;
  return below;
}

// The node reads rows before it is asked for them.
Above all_at_once(const Above& above) {
  if (!above.limited) return above;
  Above below = lose(Loss::limit, above);
  below.limited = true;
  return below;
}

// Conditions that all look at verdicts choose among these.
Above lose_by_conditions(LossSearch* search, const Plan* plan, const Above& above) {
  Above below = lose(Loss::condition, above);
  for (const auto* condition : each<Node>(plan->qual))
    if (!question_in(search, plan, condition).found) return below;
  below.verdicts = above.verdicts;
  below.limited = above.limited;
  return below;
}

// Another row may tie with the last one.
Above above_of_limit(const Limit* limit, const Above& above) {
  if (limit->limitOffset != nullptr || limit->limitOption == LIMIT_OPTION_WITH_TIES)
    return lose(Loss::limit, above);
  Above below = above;
  below.limited = below.limited || (limit->limitCount != nullptr && above.rows == Loss::none);
  return below;
}

Above above_of_locks(const LockRows* locks, const Above& above) {
  Above below = above;
  for (auto* mark : each<PlanRowMark>(locks->rowMarks))
    if (mark->waitPolicy == LockWaitSkip) below = lose(Loss::skip_locked, above);
  below.rechecked = true;
  return below;
}

// DO UPDATE without a condition stores every row.
Above above_of_insert(LossSearch* search, const ModifyTable* insert) {
  const auto* condition = as<List>(insert->onConflictWhere);
  look_at_conditions(search, &insert->plan, condition, {});
  const bool refuses = insert->onConflictAction != ONCONFLICT_NONE &&
                       (insert->onConflictAction != ONCONFLICT_UPDATE || condition != NIL);
  // Not the query asks, so a trigger or constraint of the target does, if that is no filter.
  const int target = linitial_int(insert->resultRelations);
  if (search->hidden && refuses &&
      rt_fetch(target, search->statement->rtable)->relkind != RELKIND_FOREIGN_TABLE)
    note_loss(search, Loss::conflict, nullptr);
  const Loss loss = refuses ? Loss::conflict : Loss::none;
  return {loss, loss};
}

// Is what the action's condition calls new stored, by this action or by the next?
bool stores_asked(LossSearch* search, const ModifyTable* merge, const ListCell* cell,
                  const void* actions) {
  const auto* action = lfirst_node(MergeAction, cell);
  if (!question_in(search, &merge->plan, action->qual).found) return true;
  const auto* conditions = reinterpret_cast<const List*>(action->qual);
  if (list_length(conditions) != 1 ||
      passing(search, &merge->plan, static_cast<Node*>(linitial(conditions))) == Passing::news)
    return action->commandType != CMD_NOTHING;
  const ListCell* next = lnext(as<List>(actions), cell);
  return next != nullptr && lfirst_node(MergeAction, next)->qual == nullptr &&
         lfirst_node(MergeAction, next)->commandType != CMD_NOTHING;
}

// WHEN NOT MATCHED is evaluated once for a row, and other actions as often as its match changes.
Above above_of_merge(LossSearch* search, const ModifyTable* merge) {
  Above below = {Loss::merge, Loss::merge};
  ListCell *cell, *inner;
  foreach (cell, merge->mergeActionLists)
    foreach (inner, static_cast<List*>(lfirst(cell))) {
      const auto* action = lfirst_node(MergeAction, inner);
      if (action->qual != nullptr && !stores_asked(search, merge, inner, lfirst(cell)))
        note_loss(search, Loss::merge, question_in(search, &merge->plan, action->qual).filter);
      const bool locks = action->commandType == CMD_UPDATE || action->commandType == CMD_DELETE;
      const Above here = {Loss::none, Loss::none, false, !SF_IS_NOT_MATCHED(action)};
      below.rechecked = below.rechecked || locks;
      look_at_conditions(search, &merge->plan, reinterpret_cast<List*>(action->qual), here);
      const Question question = question_in(search, &merge->plan, action->targetList);
      if (question.here) note_question(search, question, here);
    }
  return below;
}

// Does an aggregate have all rows in its result?
bool collects_rows(Node* node, void* context) {
  if (node == nullptr) return false;
  if (!IsA(node, Aggref)) return SF_WALK_EXPRESSION(node, collects_rows, context);
  const auto* aggregate = as<Aggref>(node);
  const Oid function = aggregate->aggfnoid;
  return aggregate->aggfilter == nullptr && aggregate->aggdistinct == NIL &&
         (function == F_JSON_AGG || function == F_JSONB_AGG ||
          function == F_ARRAY_AGG_ANYNONARRAY || function == F_ARRAY_AGG_ANYARRAY);
}

// What happens to the rows of the plan below (of the first one, for a join).
Above above_of_child(LossSearch* search, const Plan* plan, const Above& above) {
  switch (nodeTag(plan)) {
    case T_ModifyTable: {
      const auto* modify = as<ModifyTable>(plan);
      if (modify->operation == CMD_INSERT) return above_of_insert(search, modify);
      if (modify->operation == CMD_MERGE) return above_of_merge(search, modify);
      return {Loss::none, Loss::none, false, true};
    }
    case T_Limit: return above_of_limit(as<Limit>(plan), above);
    case T_LockRows: return above_of_locks(as<LockRows>(plan), above);
    case T_Unique:
    case T_SetOp:
    case T_Group: return lose(Loss::distinct, above);
    case T_Agg:
      if (plan->qual == NIL && collects_rows(reinterpret_cast<Node*>(plan->targetlist), nullptr))
        return all_at_once(above);
      return lose(contain_agg_clause(reinterpret_cast<Node*>(plan->targetlist)) ? Loss::aggregate
                                                                                : Loss::distinct,
                  above);
    case T_ProjectSet: return lose(Loss::set_function, above);
    case T_RecursiveUnion:
      return as<RecursiveUnion>(plan)->numCols > 0 ? lose(Loss::distinct, above) : above;
    case T_WindowAgg:
      if (plan->qual != NIL || as<WindowAgg>(plan)->runCondition != NIL)
        return lose(Loss::condition, above);
      return all_at_once(above);
    default: break;
  }
  if (plan->qual != NIL && (plan->lefttree != nullptr || !IsA(plan, CustomScan)))
    return lose_by_conditions(search, plan, above);
  const bool ahead = IsA(plan, Sort) || IsA(plan, IncrementalSort) || IsA(plan, Hash) ||
                     IsA(plan, MergeAppend) ||
                     (IsA(plan, Append) && as<Append>(plan)->nasyncplans > 0);
  return ahead ? all_at_once(above) : above;
}

// ---- nodes --------------------------------------------------------------------------------------

// Does each row of that side leave the join at least once?
bool keeps_outer(JoinType type) { return type == JOIN_LEFT || type == JOIN_FULL; }
bool keeps_inner(JoinType type) { return type == JOIN_RIGHT || type == JOIN_FULL; }

void visit(LossSearch* search, const Plan* plan, const Above& above);

// A hash join may put rows of either side aside, and a merge join compares before it returns a row.
void visit_join(LossSearch* search, const Join* join, const Above& above) {
  const JoinType type = join->jointype;
  Above passed = above;  // the join's condition
  if (type != JOIN_INNER && type != JOIN_SEMI && !keeps_outer(type) && !keeps_inner(type))
    passed.rows = Loss::join;
  look_at_conditions(search, &join->plan, join->joinqual, passed);
  Above kept = join->plan.qual == NIL ? above : lose_by_conditions(search, &join->plan, above);
  if (!IsA(join, NestLoop)) kept = all_at_once(kept);
  Above lost = lose(Loss::join, above);
  kept.several = lost.several = true;
  // For each row of the left side, LATERAL finds others, and joins them all.
  const bool lateral = IsA(join, NestLoop) && as<NestLoop>(join)->nestParams != NIL &&
                       join->joinqual == NIL && (type == JOIN_INNER || type == JOIN_LEFT);
  visit(search, join->plan.lefttree, keeps_outer(type) ? kept : lost);
  visit(search, join->plan.righttree, lateral || keeps_inner(type) ? kept : lost);
}

// Aggregates of bare verdicts count these. `context`: a Question that says where.
bool look_at_aggregate(Node* node, void* context) {
  if (node == nullptr) return false;
  if (!IsA(node, Aggref)) return SF_WALK_EXPRESSION(node, look_at_aggregate, context);
  const auto* place = as<Question>(context);
  const auto* aggregate = as<Aggref>(node);
  const auto look = [place](Expr* value) {
    const Question question = question_in(place->search, place->plan, value);
    if (!question.found) return;
    note_question(place->search, question, {});
    if (passing(place->search, place->plan, reinterpret_cast<Node*>(value)) != Passing::repeats)
      note_loss(place->search, Loss::aggregate, question);
  };
  look(aggregate->aggfilter);
  for (auto* entry : each<TargetEntry>(aggregate->args)) look(entry->expr);
  return false;
}

void look_at_targets(LossSearch* search, const Plan* plan, const Above& above) {
  for (auto* entry : each<TargetEntry>(plan->targetlist)) {
    const Expr* value = entry->expr;
    const Question question = question_in(search, plan, value);
    if (!question.here) continue;
    note_question(search, question, above);
    note_loss(search, IsA(plan, ProjectSet) ? all_at_once(above).rows : above.verdicts,
              question.filter);
  }
  // A function that asks and is aggregated may have stored the row itself.
  Question place = {search, plan, nullptr, false, false, false, nullptr, 0, false};
  if (!IsA(plan, Agg) || search->hidden) return;
  look_at_aggregate(reinterpret_cast<Node*>(plan->targetlist), &place);
  look_at_aggregate(reinterpret_cast<Node*>(plan->qual), &place);
}

// Rows that a function in FROM returns are all made before the first is read.
void look_at_source(LossSearch* search, const Plan* plan, const Above& above) {
  const void* source = IsA(plan, FunctionScan) ? as<FunctionScan>(plan)->functions
                       : IsA(plan, ValuesScan) ? as<ValuesScan>(plan)->values_lists
                                               : nullptr;
  const Question question = question_in(search, plan, source);
  if (!question.found) return;
  search->found.asks = true;
  note_loss(search, plan->qual != NIL ? Loss::condition : all_at_once(above).rows, question.filter);
}

void look_at_node(LossSearch* search, const Plan* plan, const Above& above) {
  // At most one row is never too many.
  const bool single = IsA(plan, Result) && plan->lefttree == nullptr && !above.several;
  Above here = above;
  if (single && (above.once || above.limited)) here.rows = here.verdicts = Loss::none;
  if (IsA(plan, Result))
    look_at_conditions(search, plan, as<List>(as<Result>(plan)->resconstantqual), here);
  look_at_conditions(search, plan, plan->qual, here);
  look_at_targets(search, plan, here);
  look_at_source(search, plan, here);
  if (search->hidden) return;
  if (const Const* asked = filter_of_batch_scan(plan)) {
    const auto* filter = as<Node>(asked);
    note_question(search, {search, plan, nullptr, true, true, false, filter, 0, false}, here);
    note_loss(search, here.rows, filter);
  }
}

// Does the scan give out all rows of the CTE, or all that its verdicts call new?
bool keeps_news(LossSearch* search, const Plan* scan, const Above& above) {
  for (auto* node : each<Node>(scan->qual))
    if (passing(search, scan, node) != Passing::news) return false;
  return keeps_all(above) && list_length(scan->qual) < 2;
}

void visit(LossSearch* search, const Plan* plan, const Above& above) {
  if (plan == nullptr) return;
  check_stack_depth();
  for (const auto* initial : each<SubPlan>(plan->initPlan)) {
    Subplan* subplan = &search->subplans[initial->plan_id];
    subplan->init = true;
    subplan->param = initial->setParam == NIL ? -1 : linitial_int(initial->setParam);
  }
  look_at_node(search, plan, above);
  if (IsA(plan, NestLoop) || IsA(plan, HashJoin) || IsA(plan, MergeJoin))
    return visit_join(search, as<Join>(plan), above);
  Above below = above_of_child(search, plan, above);
  below.several = below.several || list_length(parts_of(plan)) > 1 || IsA(plan, RecursiveUnion);
  below.unsure =
      below.unsure || (IsA(plan, Result) && as<Result>(plan)->resconstantqual != nullptr);
  search->locks = search->locks || below.rechecked;
  Above fenced = below;
  fenced.rechecked = false;
  for (const auto* part : each<Plan>(parts_of(plan))) visit(search, part, below);
  if (IsA(plan, SubqueryScan)) visit(search, as<SubqueryScan>(plan)->subplan, fenced);
  if (IsA(plan, CteScan)) {
    Subplan* subplan = &search->subplans[as<CteScan>(plan)->ctePlanId];
    note_use(subplan, fenced);
    subplan->kept = subplan->kept || keeps_news(search, plan, above);
  }
  visit(search, plan->lefttree, below);
  visit(search, plan->righttree, below);
}

}  // namespace

// The query, and later subplans in the list, use a subplan. Where no use was found that keeps its
// rows, it is in an expression that only looks at them, or changes tables.
LostRows find_lost_rows(const PlannedStmt* statement, const PlanView& view) {
  LossSearch search = {};
  search.statement = statement;
  search.hidden = view.hidden;
  int i = list_length(statement->subplans);
  search.subplans = allocate_zeros<Subplan>(i + 1);
  visit(&search, statement->planTree, {view.top, Loss::none, view.limited});
  for (; i > 0; --i) {
    const auto* plan = as<Plan>(list_nth(statement->subplans, i - 1));
    Subplan* subplan = &search.subplans[i];
    if (plan == nullptr) continue;
    if (!subplan->kept) note_loss(&search, subplan->lost, subplan->filter);
    const bool once = subplan->init && bms_is_empty(plan->extParam);
    if (!subplan->used && !IsA(plan, ModifyTable))
      subplan->above = {Loss::subquery, Loss::subquery, false, search.locks && !once,
                        once,           false,          false, !once};
    // A CTE that changes a table runs to its end.
    visit(&search, plan, IsA(plan, ModifyTable) ? all_at_once(subplan->above) : subplan->above);
  }
  pfree(search.subplans);
  return search.found;
}

// Planning comes here, so that the hash is known when a plan runs.
bool is_seen_call(const FuncExpr* call) {
  if (call->funcid < FirstNormalObjectId || !is_own_function(call->funcid, "streamfilter_seen"))
    return false;
  seen_hash = GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(call->funcid));
  return true;
}

bool calls_seen(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, Query))
    return SF_WALK_QUERY(reinterpret_cast<Query*>(node), calls_seen, context, 0);
  return (IsA(node, FuncExpr) && is_seen_call(as<FuncExpr>(node))) ||
         SF_WALK_EXPRESSION(node, calls_seen, context);
}

bool has_seen_call(const PlannedStmt* statement) {
  for (auto* item : each<PlanInvalItem>(statement->invalItems))
    if (item->hashValue == seen_hash) return true;
  return false;
}

}  // namespace streamfilter::pg
