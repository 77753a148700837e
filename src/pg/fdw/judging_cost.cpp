#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
}

#include "pg/fdw/batch_scan.hpp"
#include "pg/fdw/judging_cost.hpp"

namespace streamfilter::pg {
namespace {

// Real share of the declared cost. Little, because compiling does not make it faster.
constexpr double kShareOfCost = 0.005;

bool has_call(Node* node, void* context) {
  if (node == nullptr) return false;
  if (IsA(node, FuncExpr) && is_seen_call(reinterpret_cast<FuncExpr*>(node))) {
    *static_cast<Oid*>(context) = reinterpret_cast<FuncExpr*>(node)->funcid;
    return true;
  }
  return SF_WALK_EXPRESSION(node, has_call, context);
}

// Declared cost for one row.
Cost declared_cost(PlannerInfo* root, const RelOptInfo* rel) {
  QualCost declared{};
  ListCell* cell;
  foreach (cell, rel->baserestrictinfo) {
    Oid function;
    auto* clause = reinterpret_cast<Node*>(lfirst_node(RestrictInfo, cell)->clause);
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

}  // namespace

Cost excess_cost(PlannerInfo* root, const RelOptInfo* rel, const Path* path) {
  const Cost declared = declared_cost(root, rel);
  if (declared <= 0) return 0;
  const Cost excess = (1 - kShareOfCost) * declared * rows_charged(rel, path);
  return Min(excess, path->total_cost - path->startup_cost);
}

void take_back_excess(PlannerInfo* root, RelOptInfo* rel) {
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    auto* path = static_cast<Path*>(lfirst(cell));
    if (path->pathtype != T_CustomScan) path->total_cost -= excess_cost(root, rel, path);
  }
}

double rows_before(PlannerInfo* root, const RelOptInfo* rel, RestrictInfo* condition) {
  const Selectivity part =
      clause_selectivity(root, reinterpret_cast<Node*>(condition), 0, JOIN_INNER, nullptr);
  return part > 0 ? Min(clamp_row_est(rel->rows / part), rel->tuples) : rel->tuples;
}

}  // namespace streamfilter::pg
