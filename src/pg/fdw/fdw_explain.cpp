// EXPLAIN of a filter that a plan scans, inserts into or deletes from.
#include "pg/server/postgres.hpp"

extern "C" {
#include "optimizer/clauses.h"
#include "tcop/tcopprot.h"
#include "utils/ruleutils.h"
}

#include <initializer_list>

#include "pg/catalog/lookup.hpp"
#include "pg/fdw/fdw_handler.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/shmem/loss_estimate.hpp"
#include "pg/shmem/server_health.hpp"

namespace streamfilter::pg {
namespace {

// The path down to a plan node. PostgreSQL names a node's parameters after what its ancestors give
// them, but does not tell a callback the ancestors.
struct PlanSearch {
  const PlannedStmt* statement;
  const Plan* wanted;
  List* ancestors;  // Plan and SubPlan nodes, the nearest first
};

bool search_plan(Plan* plan, PlanSearch* search);

bool search_expression(Node* node, void* arg) {
  if (node == nullptr) return false;
  auto* search = static_cast<PlanSearch*>(arg);
  if (IsA(node, SubPlan)) {
    const int number = reinterpret_cast<SubPlan*>(node)->plan_id;
    if (search_plan(static_cast<Plan*>(list_nth(search->statement->subplans, number - 1)),
                    search)) {
      search->ancestors = lappend(search->ancestors, node);
      return true;
    }
  }
  return SF_WALK_EXPRESSION(node, search_expression, arg);
}

bool search_expressions(Plan* plan, PlanSearch* search) {
  List* others = NIL;
  if (IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin))
    others = reinterpret_cast<Join*>(plan)->joinqual;
  else if (IsA(plan, Result))
    others = reinterpret_cast<List*>(reinterpret_cast<Result*>(plan)->resconstantqual);
  for (List* list : {plan->initPlan, plan->targetlist, plan->qual, others})
    if (search_expression(reinterpret_cast<Node*>(list), search)) return true;
  return false;
}

bool search_plans(List* plans, PlanSearch* search) {
  for (auto* plan : each<Plan>(plans))
    if (search_plan(plan, search)) return true;
  return false;
}

bool search_children(Plan* plan, PlanSearch* search) {
  if (search_plan(outerPlan(plan), search) || search_plan(innerPlan(plan), search)) return true;
  switch (nodeTag(plan)) {
    case T_Append: return search_plans(reinterpret_cast<Append*>(plan)->appendplans, search);
    case T_MergeAppend:
      return search_plans(reinterpret_cast<MergeAppend*>(plan)->mergeplans, search);
    case T_SubqueryScan: return search_plan(reinterpret_cast<SubqueryScan*>(plan)->subplan, search);
    case T_CustomScan:
      return search_plans(reinterpret_cast<CustomScan*>(plan)->custom_plans, search);
    default: return false;
  }
}

bool search_plan(Plan* plan, PlanSearch* search) {
  if (plan == nullptr) return false;
  if (plan == search->wanted) return true;
  check_stack_depth();
  if (!search_children(plan, search) && !search_expressions(plan, search)) return false;
  search->ancestors = lappend(search->ancestors, plan);
  return true;
}

bool is_column(Node* node, Index relation) {
  node = strip_implicit_coercions(node);
  return IsA(node, Var) && reinterpret_cast<Var*>(node)->varno == static_cast<int>(relation);
}

// Conditions with the filter's column on the left, wherever the planner has put it.
List* columns_first(List* conditions, Index relation) {
  List* result = NIL;
  for (auto* condition : each<Node>(conditions)) {
    if (IsA(condition, OpExpr)) {
      auto* comparison = reinterpret_cast<OpExpr*>(condition);
      if (list_length(comparison->args) == 2 &&
          !is_column(static_cast<Node*>(linitial(comparison->args)), relation) &&
          is_column(static_cast<Node*>(lsecond(comparison->args)), relation)) {
        condition = static_cast<Node*>(copyObjectImpl(condition));
        CommuteOpExpr(reinterpret_cast<OpExpr*>(condition));
      }
    }
    result = lappend(result, condition);
  }
  return result;
}

void explain_key(Plan* plan, List* conditions, ExplainState* es) {
  conditions = columns_first(conditions, reinterpret_cast<Scan*>(plan)->scanrelid);
  PlanSearch search = {es->pstmt, plan, NIL};
  // If its place is not found, a plan shows its parameters as $0.
  if (!search_plan(es->pstmt->planTree, &search)) search_plans(es->pstmt->subplans, &search);
  List* context = set_deparse_context_plan(es->deparse_cxt, plan, search.ancestors);
  char* text = deparse_expression(reinterpret_cast<Node*>(make_ands_explicit(conditions)), context,
                                  es->verbose, false);
  ExplainPropertyText("Filter Key", text, es);
}

// Used share of the filter, in per cent.
double fill_of(const FilterRelation* relation) {
  const FilterSlot* slot = peek_slot(relation);
  if (slot == nullptr) return 0;
  return 100 * read_totals(slot, block_of(slot)->parameters).estimate.fill;
}

// Where the state is, and which of these servers are now unreachable.
void explain_servers(const FilterRelation* relation, ExplainState* es) {
  List* names = NIL;
  List* unreachable = NIL;
  for (int i = 0; i < relation->server_count; ++i) {
    char* name = server_of_oid(relation->servers[i])->servername;
    names = lappend(names, name);
    if (unreachable_since(relation->servers[i]) != 0) unreachable = lappend(unreachable, name);
  }
  ExplainPropertyList("Servers", names, es);
  if (unreachable != NIL) ExplainPropertyList("Lost", unreachable, es);
}

// Where the bits of a key lie; nullptr: in one slice.
const char* slicing_of(const Parameters& parameters) {
  if (parameters.k1 == 0) return nullptr;
  if (parameters.slicing == Slicing::vertical)
    return psprintf("vertical, %u slices", parameters.slices);
  if (parameters.slicing == Slicing::horizontal)
    return psprintf("%u x %u bits, %u slices", parameters.k1, parameters.k2, parameters.slices);
  char slices[32];
  print_slices(parameters, slices, sizeof slices);
  return psprintf("diced %s, %s slices", parameters.dice == Dice::hv ? "h-v" : "v-h", slices);
}

void explain_filter(Relation rel, ExplainState* es) {
  FilterHandle* filter = filter_for_use(RelationGetRelid(rel), Use::define);  // makes no state
  const Definition& definition = filter->relation->definition;
  const Parameters& parameters = definition.parameters;
  ExplainPropertyText("Kind", find_ops(parameters.kind)->name, es);
  if (definition.reason != nullptr) ExplainPropertyText("Chosen", definition.reason, es);
  if (es->format == EXPLAIN_FORMAT_TEXT) {
    char memory[32];
    print_size(parameters.memory, memory, sizeof memory);
    const bool has_unit = parameters.memory % 1024 == 0;
    ExplainPropertyText("Memory", has_unit ? memory : psprintf("%s bytes", memory), es);
  } else {
    ExplainPropertyUInteger("Memory", nullptr, parameters.memory, es);
  }
  if (const char* slicing = slicing_of(parameters)) ExplainPropertyText("Slicing", slicing, es);
  if (const RelationOptions& options = filter->relation->options; options.parent != nullptr) {
    ExplainPropertyText("Parent", options.parent, es);
    ExplainPropertyText("Tree", kTreeWords[static_cast<int>(options.tree)], es);
  }
  if (is_remote(filter->relation))
    explain_servers(filter->relation, es);
  else
    ExplainPropertyFloat("Fill", "%", fill_of(filter->relation), 1, es);
}

}  // namespace

void explain_foreign_scan(ForeignScanState* node, ExplainState* es) {
  auto* plan = reinterpret_cast<ForeignScan*>(node->ss.ps.plan);
  explain_key(&plan->scan.plan, plan->fdw_recheck_quals, es);
  explain_filter(node->ss.ss_currentRelation, es);
}

void explain_foreign_modify(ModifyTableState*, ResultRelInfo* target, List*, int,
                            ExplainState* es) {
  explain_filter(target->ri_RelationDesc, es);
}

// ---- what filters have done with the rows -------------------------------------------------------

// Adds a line per filter below the plan. PostgreSQL offers no place with the trigger's own line,
// and formats other than text have no place after the query.

static void append_judged_rows(ExplainState* es) {
  flush_counters();
  for (int i = 0; i < judged_filters(); ++i) {
    const JudgedRows& rows = judged_by(i);
    const char* name = get_rel_name(rows.filter);
    if (const char* text = describe_judged_rows(rows); text != nullptr && name != nullptr)
      appendStringInfo(es->str, "Filter %s: %s\n", quote_identifier(name), text);
  }
}

void explain_judged_rows(ExplainCall* call) {
  auto* es = call->get<ExplainState*>();
  const bool wanted = es->analyze && es->format == EXPLAIN_FORMAT_TEXT;
  const bool collecting = collects_judged_rows;
  if (wanted && !collecting) {
    flush_counters();
    collect_judged_rows(true);
  }
  call->go_on();
  if (!wanted) return;
  append_judged_rows(es);
  if (!collecting) collect_judged_rows(false);
}

}  // namespace streamfilter::pg
