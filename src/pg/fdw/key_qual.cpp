// Finds conditions of a query that give a key column its value.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/stratnum.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/fdw/fdw_handler.hpp"
#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {
namespace {

bool is_column(const Node* node, const RelOptInfo* rel, const FilterColumn* column) {
  while (node != nullptr && IsA(node, RelabelType))
    node = reinterpret_cast<const Node*>(reinterpret_cast<const RelabelType*>(node)->arg);
  if (node == nullptr || !IsA(node, Var)) return false;
  auto* var = reinterpret_cast<const Var*>(node);
  return static_cast<Index>(var->varno) == rel->relid && var->varattno == column->attnum &&
         var->varlevelsup == 0;
}

const TypeCacheEntry* equality_of(const FilterColumn* column) {
  return lookup_type_cache(column->base_type,
                           TYPECACHE_EQ_OPR | TYPECACHE_HASH_OPFAMILY | TYPECACHE_BTREE_OPFAMILY);
}

// Is it the equality that the hash is based on? The column may be relabelled (a varchar is compared
// as text), but not to a type with another equality: citext = text is none of citext's operators.
bool is_key_equality(Oid oper, const FilterColumn* column) {
  const TypeCacheEntry* type = equality_of(column);
  return (OidIsValid(type->hash_opf) &&
          get_op_opfamily_strategy(oper, type->hash_opf) == HTEqualStrategyNumber) ||
         (OidIsValid(type->btree_opf) &&
          get_op_opfamily_strategy(oper, type->btree_opf) == BTEqualStrategyNumber);
}

// All deterministic collations have one equality, that of the bytes.
bool same_equality(Oid collation, const FilterColumn* column) {
  if (collation == column->collation || !OidIsValid(column->collation)) return true;
  return OidIsValid(collation) && get_collation_isdeterministic(collation) &&
         get_collation_isdeterministic(column->collation);
}

bool is_float(Oid type) { return type == FLOAT4OID || type == FLOAT8OID; }

// The value with the column's type, without its typmod: a value that does not fit is no key of the
// filter, but a cast to the typmod could make it one. nullptr: impossible.
Node* fit_value(Node* value, const FilterColumn* column, bool* exact) {
  const Oid source = getBaseType(exprType(value));
  const Oid target = column->base_type;
  *exact = true;
  if (source == target || IsBinaryCoercible(source, target)) return value;
  // The scan converts these, because a cast raises an error if a number does not fit.
  if ((is_integer(source) && is_integer(target)) || (is_float(source) && is_float(target)))
    return value;
  if (source == RECORDOID) return nullptr;  // an anonymous row type has no casts
  // A cast may change the value (text to name cuts it), so that the clause has to be tested after.
  *exact = false;
  return coerce_to_target_type(nullptr, value, exprType(value), target, -1, COERCION_ASSIGNMENT,
                               COERCE_IMPLICIT_CAST, -1);
}

KeyClause* make_key_clause(PlannerInfo* root, const RelOptInfo* rel, const FilterColumn* column,
                           RestrictInfo* clause, Node* value) {
  if (bms_is_member(rel->relid, pull_varnos(root, value)) || contain_volatile_functions(value))
    return nullptr;
  auto* key = allocate<KeyClause>();
  key->clause = clause;
  key->relids = bms_del_member(bms_copy(clause->clause_relids), rel->relid);
  key->value = fit_value(value, column, &key->exact);
  return key->value != nullptr ? key : nullptr;
}

// The planner turns `flag = true` into `flag`, and `flag = false` into `NOT flag`.
Node* value_of_condition(Node* condition, const RelOptInfo* rel, const FilterColumn* column) {
  if (is_column(condition, rel, column)) return makeBoolConst(true, false);
  if (is_notclause(condition) &&
      is_column(reinterpret_cast<Node*>(get_notclausearg(condition)), rel, column))
    return makeBoolConst(false, false);
  if (!IsA(condition, BooleanTest)) return nullptr;
  auto* test = reinterpret_cast<BooleanTest*>(condition);
  if ((test->booltesttype == IS_TRUE || test->booltesttype == IS_FALSE) &&
      is_column(reinterpret_cast<Node*>(test->arg), rel, column))
    return makeBoolConst(test->booltesttype == IS_TRUE, false);
  return nullptr;
}

bool is_member_for_column(PlannerInfo*, RelOptInfo* rel, EquivalenceClass* equals,
                          EquivalenceMember* member, void* arg) {
  auto* column = static_cast<const FilterColumn*>(arg);
  return is_column(reinterpret_cast<Node*>(member->em_expr), rel, column) &&
         same_equality(equals->ec_collation, column) &&
         list_member_oid(equals->ec_opfamilies, equality_of(column)->btree_opf);
}

}  // namespace

KeyClause* match_key_clause(PlannerInfo* root, const RelOptInfo* rel, const FilterColumn* column,
                            RestrictInfo* clause) {
  if (clause->pseudoconstant) return nullptr;
  Node* condition = reinterpret_cast<Node*>(clause->clause);
  if (column->base_type == BOOLOID)
    if (Node* value = value_of_condition(condition, rel, column))
      return make_key_clause(root, rel, column, clause, value);

  if (!IsA(condition, OpExpr)) return nullptr;
  auto* equals = reinterpret_cast<OpExpr*>(condition);
  if (list_length(equals->args) != 2 || !same_equality(equals->inputcollid, column)) return nullptr;
  auto* left = static_cast<Node*>(linitial(equals->args));
  auto* right = static_cast<Node*>(lsecond(equals->args));
  const bool on_the_left = is_column(left, rel, column);
  if (!on_the_left && !is_column(right, rel, column)) return nullptr;
  if (!is_key_equality(equals->opno, column)) return nullptr;
  return make_key_clause(root, rel, column, clause, on_the_left ? right : left);
}

List* implied_key_clauses(PlannerInfo* root, RelOptInfo* rel, const FilterColumn* column) {
  if (!rel->has_eclass_joins) return NIL;
  List* keys = NIL;
  for (auto* clause : each<RestrictInfo>(generate_implied_equalities_for_column(
           root, rel, is_member_for_column, const_cast<FilterColumn*>(column),
           rel->lateral_referencers))) {
    if (!join_clause_is_movable_to(clause, rel)) continue;
    if (KeyClause* key = match_key_clause(root, rel, column, clause)) keys = lappend(keys, key);
  }
  return keys;
}

}  // namespace streamfilter::pg
