// Plans of SELECT. A filter answers one question, whether one key was seen; so the only scan that
// can run is a look-up that has a value for every key column. Values come from conditions on the
// filter alone or from joins, in every combination, and each combination of other relations is a
// parameterized path.
//
// A path without parameters has to exist, or the planner fails. It would have to list the filter:
// it costs more than all others, and raises an error when a plan with it starts. (Not when it is
// planned: the planner also makes plans that it does not use, of an EXISTS as a hash table or of a
// prepared statement without its parameters.)
#include "pg/server/postgres.hpp"

extern "C" {
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
}

#include "pg/fdw/fdw_handler.hpp"
#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {
namespace {

// RelOptInfo::fdw_private.
struct FilterPlan {
  const FilterRelation* relation;
  List** clauses;  // KeyClauses, per key column; those that need no other relation come first
};

constexpr Cost kListingCost = 1e30;        // more than enable_nestloop = off adds to a look-up
constexpr int kListingDisabled = 1000000;  // counts before cost since 18
constexpr double kAssumedKeys = 1000;      // not worth looking into the state
constexpr int kMaxCombinations = 64;

FilterPlan* plan_of(const RelOptInfo* rel) { return static_cast<FilterPlan*>(rel->fdw_private); }

// Adds the set unless it contains a member of `sets`; removes members that contain it.
List* add_combination(List* sets, Relids relids) {
  ListCell* cell;
  for (auto* set : each<Bitmapset>(sets))
    if (bms_is_subset(set, relids)) return sets;
  foreach (cell, sets)
    if (bms_is_subset(relids, static_cast<Relids>(lfirst(cell))))
      sets = foreach_delete_current(sets, cell);
  return list_length(sets) < kMaxCombinations ? lappend(sets, relids) : sets;
}

// The smallest sets of other relations that give every key column a value. One empty set: no other
// relation is needed; no set: it is impossible.
List* combinations(const FilterPlan* plan) {
  List* sets = lappend(NIL, nullptr);
  for (int i = 0; i < plan->relation->key_count; ++i) {
    List* wider = NIL;
    for (auto* set : each<Bitmapset>(sets))
      for (auto* key_clause : each<KeyClause>(plan->clauses[i]))
        wider = add_combination(wider, bms_union(set, key_clause->relids));
    sets = wider;
  }
  return sets;
}

void add_foreign_path(PlannerInfo* root, RelOptInfo* rel, Relids required, bool listing) {
  Cost startup = rel->baserestrictcost.startup + rel->reltarget->cost.startup;
  Cost total = startup + 0.5 * cpu_operator_cost * plan_of(rel)->relation->key_count +
               rel->baserestrictcost.per_tuple + rel->reltarget->cost.per_tuple;
  if (listing) startup = total = kListingCost;
  add_path(rel, reinterpret_cast<Path*>(SF_CREATE_FOREIGNSCAN_PATH(
                    root, rel, listing ? rel->rows : 1, listing ? kListingDisabled : 0, startup,
                    total, required)));
}

// EXISTS over the filter alone cannot become a join with its distinct keys, which would list it.
// The planner must know: as long as it assumes such a join, it does not look for a join of the
// relations that give the values, if only the filter joins these.
void rule_out_distinct_keys(PlannerInfo* root, const RelOptInfo* rel) {
  for (auto* join : each<SpecialJoinInfo>(root->join_info_list)) {
    if (join->jointype == JOIN_SEMI && bms_equal(join->syn_righthand, rel->relids))
      join->semi_can_btree = join->semi_can_hash = false;
  }
}

// One of these clauses, or one found before, that needs only relations in `available`.
KeyClause* choose_clause(PlannerInfo* root, RelOptInfo* rel, int key, List* clauses,
                         Relids available) {
  for (auto* restriction : each<RestrictInfo>(clauses)) {
    KeyClause* found = match_key_clause(root, rel, plan_of(rel)->relation->keys[key], restriction);
    if (found != nullptr && bms_is_subset(found->relids, available)) return found;
  }
  for (auto* found : each<KeyClause>(plan_of(rel)->clauses[key])) {
    if (bms_is_subset(found->relids, available)) return found;
  }
  return nullptr;
}

}  // namespace

void get_foreign_rel_size(PlannerInfo* root, RelOptInfo* rel, Oid relid) {
  FilterHandle* filter = filter_for_use(relid, Use::define);
  auto* plan = allocate<FilterPlan>();
  plan->relation = filter->relation;
  plan->clauses = allocate_zeros<List*>(plan->relation->key_count);
  rel->fdw_private = plan;

  bool all_bound = true;
  for (int i = 0; i < plan->relation->key_count; ++i) {
    for (auto* restriction : each<RestrictInfo>(rel->baserestrictinfo))
      if (KeyClause* key = match_key_clause(root, rel, plan->relation->keys[i], restriction))
        plan->clauses[i] = lappend(plan->clauses[i], key);
    all_bound &= plan->clauses[i] != NIL;
  }
  rel->tuples = kAssumedKeys;
  set_baserel_size_estimates(root, rel);
  if (all_bound) rel->rows = 1;
  rule_out_distinct_keys(root, rel);
}

void get_foreign_paths(PlannerInfo* root, RelOptInfo* rel, Oid) {
  FilterPlan* plan = plan_of(rel);
  for (int i = 0; i < plan->relation->key_count; ++i) {
    if (plan->clauses[i] != NIL &&
        bms_is_empty(static_cast<KeyClause*>(linitial(plan->clauses[i]))->relids))
      continue;
    for (auto* clause : each<RestrictInfo>(rel->joininfo)) {
      if (!join_clause_is_movable_to(clause, rel)) continue;
      if (KeyClause* key = match_key_clause(root, rel, plan->relation->keys[i], clause))
        plan->clauses[i] = lappend(plan->clauses[i], key);
    }
    plan->clauses[i] =
        list_concat(plan->clauses[i], implied_key_clauses(root, rel, plan->relation->keys[i]));
  }

  bool needs_listing = true;
  for (auto* relids : each<Bitmapset>(combinations(plan))) {
    if (bms_is_subset(relids, rel->lateral_relids)) needs_listing = false;
    add_foreign_path(root, rel, bms_union(relids, rel->lateral_relids), false);
  }
  if (needs_listing) add_foreign_path(root, rel, rel->lateral_relids, true);
}

ForeignScan* get_foreign_plan(PlannerInfo* root, RelOptInfo* rel, Oid, ForeignPath* path,
                              List* targets, List* clauses, Plan* outer_plan) {
  List* values = NIL;
  List* key_conditions = NIL;
  List* local = list_copy(clauses);
  for (int i = 0; i < plan_of(rel)->relation->key_count; ++i) {
    const KeyClause* key =
        choose_clause(root, rel, i, clauses, PATH_REQ_OUTER(reinterpret_cast<Path*>(path)));
    if (key == nullptr) {
      values = key_conditions = NIL;  // marks a plan that would have to list the filter
      local = clauses;
      break;
    }
    values = lappend(values, key->value);
    key_conditions = list_append_unique_ptr(key_conditions, key->clause->clause);
    if (key->exact) local = list_delete_ptr(local, key->clause);
  }
  return make_foreignscan(targets, extract_actual_clauses(local, false), rel->relid, values, NIL,
                          NIL, key_conditions, outer_plan);
}

}  // namespace streamfilter::pg
