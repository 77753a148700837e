// Planning. The node stands on a scan that the core has planned, and takes over its condition on
// the filter. The scan evaluates its other conditions before.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/sysattr.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
}

#include "pg/fdw/batch_scan.hpp"
#include "pg/fdw/batch_scan_plan.hpp"
#include "pg/handle/lost_rows.hpp"
#include "pg/handle/waiting_code.hpp"

namespace streamfilter::pg {
namespace {

// ---- costs --------------------------------------------------------------------------------------

// Costs of streamfilter_seen(). It is declared to cost a hundred times its real cost, so that all
// other conditions are evaluated before: rows that they remove must not be remembered. This would
// make paths with correctly ordered conditions far too expensive, and get their queries compiled
// for nothing.

// Real share of the declared cost. Little, because compiling does not make it faster.
constexpr double kShareOfCost = 0.005;

bool has_call(Node* node, void* context) {
  // Every query pays for this walk: leaves are not worth a call of the walker.
  if (node == nullptr || IsA(node, Var) || IsA(node, Const) || IsA(node, Param)) return false;
  if (IsA(node, FuncExpr) && is_seen_call(reinterpret_cast<FuncExpr*>(node))) {
    *static_cast<Oid*>(context) = reinterpret_cast<FuncExpr*>(node)->funcid;
    return true;
  }
  return SF_WALK_EXPRESSION(node, has_call, context);
}

// Declared cost for one row.
Cost declared_cost(PlannerInfo* root, const RelOptInfo* rel) {
  QualCost declared{};
  for (auto* restriction : each<RestrictInfo>(rel->baserestrictinfo)) {
    Oid function;
    auto* clause = reinterpret_cast<Node*>(restriction->clause);
    if (has_call(clause, &function)) add_function_cost(root, function, nullptr, &declared);
  }
  return declared.per_tuple;
}

// Number of rows for which the planner has charged the conditions.
double rows_charged(const RelOptInfo* rel, const Path* path) {
  Selectivity part = 1;
  Cost ignored;
  switch (path->pathtype) {
    case T_IndexScan:
    case T_IndexOnlyScan: part = reinterpret_cast<const IndexPath*>(path)->indexselectivity; break;
    case T_BitmapHeapScan:
      cost_bitmap_tree_node(reinterpret_cast<const BitmapHeapPath*>(path)->bitmapqual, &ignored,
                            &part);
      break;
    case T_SubqueryScan: return reinterpret_cast<const SubqueryScanPath*>(path)->subpath->rows;
    case T_SeqScan:
    case T_FunctionScan:
    case T_ValuesScan: break;
    default: return path->rows;
  }
  return clamp_row_est(rel->tuples * part);
}

// For a path of a base relation, before it becomes a plan: declared minus real cost of the calls
// among its conditions.
Cost excess_cost(Cost declared, const RelOptInfo* rel, const Path* path) {
  const Cost excess = (1 - kShareOfCost) * declared * rows_charged(rel, path);
  return Min(excess, path->total_cost - path->startup_cost);
}

// Subtracts that from all paths.
void take_back_excess(Cost declared, RelOptInfo* rel) {
  for (auto* path : each<Path>(rel->pathlist)) {
    if (path->pathtype != T_CustomScan) path->total_cost -= excess_cost(declared, rel, path);
  }
}

// Number of rows that pass all other conditions.
double rows_before(PlannerInfo* root, const RelOptInfo* rel, RestrictInfo* condition) {
  const Selectivity part =
      clause_selectivity(root, reinterpret_cast<Node*>(condition), 0, JOIN_INNER, nullptr);
  return part > 0 ? Min(clamp_row_est(rel->rows / part), rel->tuples) : rel->tuples;
}

// ---- the plan node ------------------------------------------------------------------------------

// Waiting time saved per call of streamfilter_seen().
constexpr double kSavedPerRow = 1;  // cpu_operator_cost

Plan* plan_batch_scan(PlannerInfo*, RelOptInfo*, CustomPath*, List*, List*, List*);

const CustomPathMethods kPathMethods = {"streamfilter batch", plan_batch_scan, nullptr};
const CustomScanMethods kScanMethods = {kBatchNode, create_batch_scan_state};

// The call if the condition is NOT streamfilter_seen(constant filter, values…), otherwise nullptr.
FuncExpr* find_seen_call(Expr* condition) {
  if (!is_notclause(condition)) return nullptr;
  Expr* inner = get_notclausearg(condition);
  if (!IsA(inner, FuncExpr)) return nullptr;
  auto* call = reinterpret_cast<FuncExpr*>(inner);
  if (call->funcvariadic || list_length(call->args) < 2 || !IsA(linitial(call->args), Const) ||
      linitial_node(Const, call->args)->constisnull)
    return nullptr;
  return is_seen_call(call) ? call : nullptr;
}

// The relation's only volatile condition, if it is one of ours.
FuncExpr* find_call(const RelOptInfo* rel, RestrictInfo** condition) {
  FuncExpr* found = nullptr;
  for (auto* restriction : each<RestrictInfo>(rel->baserestrictinfo)) {
    Expr* clause = restriction->clause;
    if (!contain_volatile_functions(reinterpret_cast<Node*>(clause))) continue;
    if (found != nullptr) return nullptr;
    *condition = restriction;
    found = find_seen_call(clause);
    if (found == nullptr || contain_subplans(reinterpret_cast<Node*>(found)) ||
        contain_volatile_functions(reinterpret_cast<Node*>(found->args)))
      return nullptr;
  }
  return found;
}

// System columns and whole rows are not among the columns that a scan passes on.
bool has_only_columns(const RelOptInfo* rel, const FuncExpr* call) {
  Bitmapset* columns = nullptr;
  pull_varattnos(reinterpret_cast<Node*>(rel->reltarget->exprs), rel->relid, &columns);
  pull_varattnos(reinterpret_cast<Node*>(call->args), rel->relid, &columns);
  const int first = bms_next_member(columns, -1);
  return first < 0 || first + FirstLowInvalidHeapAttributeNumber > 0;
}

bool is_plain_scan(const Path* path) {
  return path->param_info == nullptr && !path->parallel_aware &&
         (path->pathtype == T_SeqScan || path->pathtype == T_IndexScan ||
          path->pathtype == T_BitmapHeapScan || path->pathtype == T_FunctionScan ||
          path->pathtype == T_ValuesScan);
}

// Can rows be read ahead without anybody noticing?
bool is_plain_source(const RangeTblEntry* rte) {
  switch (rte->rtekind) {
    case RTE_RELATION:
      return rte->tablesample == nullptr &&
             (rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW);
    case RTE_FUNCTION: return true;  // it has returned all rows before the first is read
    case RTE_VALUES: return !contain_volatile_functions(reinterpret_cast<Node*>(rte->values_lists));
    default: return false;
  }
}

// add_path frees paths that a new one makes superfluous.
Path* copy_path(const Path* path) {
  const Size size = path->pathtype == T_IndexScan        ? sizeof(IndexPath)
                    : path->pathtype == T_BitmapHeapScan ? sizeof(BitmapHeapPath)
                                                         : sizeof(Path);
  auto* copy = static_cast<Path*>(palloc(size));
  memcpy(static_cast<void*>(copy), path, size);
  return copy;
}

// Do all rows go into a table?
bool fills_table(const PlannerInfo* root) {
  while (root->parent_root != nullptr) root = root->parent_root;
  return root->parse->commandType == CMD_INSERT && root->parse->returningList == NIL;
}

// If the filter is on other servers, reading ahead fetches no memory, but saves messages if these
// are asked for many keys at once.
bool is_asked_row_by_row(const PlannerInfo* root, const FuncExpr* call) {
  const Oid relid = DatumGetObjectId(static_cast<Const*>(linitial(call->args))->constvalue);
  if (!is_filter(relid)) return false;
  FilterHandle* filter = filter_for_use(relid, Use::define);
  return is_remote(filter->relation) && !(batch_insert && fills_table(root));
}

// Stands above a scan without the condition.
CustomPath* make_batch_path(PlannerInfo* root, RelOptInfo* rel, const Path* scan,
                            RestrictInfo* condition, Cost declared) {
  Path* child = copy_path(scan);
  child->rows = rows_before(root, rel, condition);
  child->total_cost -= excess_cost(declared, rel, scan);
  child->total_cost =
      Max(child->startup_cost, child->total_cost - kSavedPerRow * cpu_operator_cost * child->rows);
  CustomPath* path = makeNode(CustomPath);
  path->path.pathtype = T_CustomScan;
  path->path.parent = rel;
  path->path.pathtarget = rel->reltarget;
  path->path.rows = scan->rows;
  path->path.startup_cost = child->startup_cost;
  path->path.total_cost = child->total_cost;
  path->path.pathkeys = child->pathkeys;
  path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
  path->custom_paths = list_make1(child);
  path->methods = &kPathMethods;
  return path;
}

void add_batch_paths(PlannerInfo* root, RelOptInfo* rel, const RangeTblEntry* rte, Cost declared) {
  if (!batch_scan || !is_plain_source(rte) || root->hasPseudoConstantQuals) return;
  RestrictInfo* condition = nullptr;
  const FuncExpr* call = find_call(rel, &condition);
  if (call == nullptr || is_asked_row_by_row(root, call) || !has_only_columns(rel, call)) return;
  List* added = NIL;
  for (const auto* scan : each<Path>(rel->pathlist)) {
    if (is_plain_scan(scan))
      added = lappend(added, make_batch_path(root, rel, scan, condition, declared));
  }
  for (auto* path : each<Path>(added)) add_path(rel, path);
}

// All columns of the table, so that the scan can pass on its tuples unchanged; if that is
// impossible, the needed ones. The node's output may be decided later, from the same columns.
List* columns_for(PlannerInfo* root, RelOptInfo* rel, FuncExpr* call) {
  if (List* physical = build_physical_tlist(root, rel)) return physical;
  List* needed =
      pull_var_clause(reinterpret_cast<Node*>(list_concat_copy(rel->reltarget->exprs, call->args)),
                      PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
  return add_to_flat_tlist(NIL, needed);
}

Plan* plan_batch_scan(PlannerInfo* root, RelOptInfo* rel, CustomPath* path, List* targets,
                      List* clauses, List* children) {
  auto* child = static_cast<Plan*>(linitial(children));
  FuncExpr* call = nullptr;
  Expr* condition = nullptr;
  for (auto* restriction : each<RestrictInfo>(clauses)) {
    condition = restriction->clause;
    call = find_seen_call(condition);
    if (call != nullptr) break;
  }
  if (call == nullptr || !list_member(child->qual, condition))
    elog(ERROR, "the condition on a filter is not where it was expected");
  child->qual = list_delete(child->qual, condition);
  record_plan_function_dependency(root, call->funcid);  // as for a condition that stays
  child->targetlist = columns_for(root, rel, call);

  CustomScan* plan = makeNode(CustomScan);
  plan->scan.plan.targetlist = targets;
  plan->scan.plan.qual = NIL;
  plan->scan.scanrelid = 0;
  plan->flags = path->flags;
  plan->custom_plans = children;
  plan->custom_exprs = list_copy_tail(call->args, 1);
  plan->custom_private = list_make1(linitial(call->args));
  plan->custom_scan_tlist = static_cast<List*>(copyObjectImpl(child->targetlist));
  plan->methods = &kScanMethods;
  return &plan->scan.plan;
}

}  // namespace

void add_batch_scans(PathsCall* call) {
  call->go_on();
  auto* root = call->get<PlannerInfo*>();
  auto* rel = call->get<RelOptInfo*>();
  if (rel->baserestrictinfo == NIL) return;
  const Cost declared = declared_cost(root, rel);
  if (likely(declared <= 0)) return;  // no condition asks a filter
  add_batch_paths(root, rel, call->get<RangeTblEntry*>(), declared);
  take_back_excess(declared, rel);
}

void init_batch_scan() { RegisterCustomScanMethods(&kScanMethods); }

}  // namespace streamfilter::pg
