#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_aggregate.h"
}

#include "core/base/text.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/volatile_code.hpp"

namespace streamfilter::pg {
namespace {

// The reference to its checks lasts as long as the memory context.
bool is_volatile_domain(Oid domain, MemoryContext memory) {
  auto* checks = allocate_zeros<DomainConstraintRef>(1, memory);
  InitDomainConstraintRef(domain, checks, memory, false);
  for (const auto* check : each<DomainConstraintState>(checks->constraints)) {
    if (runs_volatile_code(reinterpret_cast<Node*>(check->check_expr))) return true;
  }
  return false;
}

bool is_volatile_domain(Oid domain) {
  MemoryContext memory = make_small_context("streamfilter domain");
  const bool found = is_volatile_domain(domain, memory);
  MemoryContextDelete(memory);
  return found;
}

bool has_volatile_field(Oid composite) {
  TupleDesc columns = lookup_rowtype_tupdesc_copy(composite, -1);
  const bool found = has_volatile_column(columns);
  FreeTupleDesc(columns);
  return found;
}

bool is_volatile_function(Oid function) {
  return OidIsValid(function) &&
         (func_volatile(function) == PROVOLATILE_VOLATILE || asks_in_secret(function));
}

// Aggregates themselves are always declared immutable.
bool is_volatile_aggregate(Oid function) {
  if (function < FirstNormalObjectId) return false;
  bool found = false;  // also of a window function, which is no aggregate
  read_catalog<FormData_pg_aggregate>(AGGFNOID, function, [&](const auto& row, HeapTuple) {
    for (const Oid part :
         {row.aggtransfn, row.aggfinalfn, row.aggmtransfn, row.aggminvtransfn, row.aggmfinalfn})
      found = found || is_volatile_function(part);
  });
  return found;
}

Oid aggregate_of(const Node* node) {
  if (IsA(node, Aggref)) return reinterpret_cast<const Aggref*>(node)->aggfnoid;
  if (IsA(node, WindowFunc)) return reinterpret_cast<const WindowFunc*>(node)->winfnoid;
  return InvalidOid;
}

// They answer NULL until a row is written.
bool tells_of_writing(Oid function) {
  return function == F_PG_CURRENT_XACT_ID_IF_ASSIGNED || function == F_TXID_CURRENT_IF_ASSIGNED;
}

bool find_secret_question(Oid function, void* found) {
  if (!tells_of_writing(function) && !asks_in_secret(function)) return false;
  *static_cast<Oid*>(found) = function;
  return true;
}

// Functions such as json_populate_record() make values of any type.
bool makes_value(const Node* node) {
  return IsA(node, CoerceToDomain) || IsA(node, CoerceViaIO) || IsA(node, FuncExpr);
}

bool look_at_node(Node* node, void*) {
  return node != nullptr &&
         (find_hidden_code(node) != nullptr || SF_WALK_EXPRESSION(node, look_at_node, nullptr));
}

// Does a volatile function check values of the type when they are made?
bool runs_volatile_check(Oid type) {
  if (type < FirstNormalObjectId) return false;
  check_stack_depth();
  switch (get_typtype(type)) {
    case TYPTYPE_DOMAIN: return is_volatile_domain(type) || runs_volatile_check(getBaseType(type));
    case TYPTYPE_COMPOSITE: return has_volatile_field(type);
    case TYPTYPE_RANGE: return runs_volatile_check(get_range_subtype(type));
    case TYPTYPE_MULTIRANGE: return runs_volatile_check(get_multirange_range(type));
    default: return runs_volatile_check(get_element_type(type));
  }
}

}  // namespace

bool only_computes(Oid function) {
  static constexpr const char* kNames[] = {"random", "random_normal",   "gen_random_uuid", "uuidv4",
                                           "uuidv7", "clock_timestamp", "timeofday",       nullptr};
  if (function >= FirstUnpinnedObjectId) return false;
  const char* name = get_func_name(function);
  return name != nullptr && find_word(kNames, name) >= 0;
}

bool has_volatile_column(TupleDesc columns) {
  for (int i = 0; i < columns->natts; ++i) {
    const Form_pg_attribute column = TupleDescAttr(columns, i);
    if (!column->attisdropped && runs_volatile_check(column->atttypid)) return true;
  }
  return false;
}

const char* find_hidden_code(const Node* node) {
  Oid asking;
  if (check_functions_in_node(const_cast<Node*>(node), find_secret_question, &asking))
    return psprintf(tells_of_writing(asking)
                        ? "function %s answers differently once a row is written"
                        : "function %s runs volatile code, though it is not declared volatile",
                    get_func_name(asking));
  if (is_volatile_aggregate(aggregate_of(node)))
    return psprintf("aggregate %s has a volatile part", get_func_name(aggregate_of(node)));
  if (!makes_value(node)) return nullptr;
  const Oid type = exprType(node);
  if (!runs_volatile_check(type)) return nullptr;
  return "a domain calls a volatile function";
}

bool hides_volatile_code(Node* expression) { return look_at_node(expression, nullptr); }

bool runs_volatile_code(Node* expression) {
  return contain_volatile_functions(expression) || hides_volatile_code(expression);
}

// ---- the code of a table ------------------------------------------------------------------------

namespace {

// Computed columns and indexes may only call immutable functions, but functions may be declared
// wrongly.
bool has_computed_column(TupleDesc type, CodeTest test) {
  const TupleConstr* constraints = type->constr;
  if (constraints == nullptr || !constraints->has_generated_stored) return false;
  for (int i = 0; i < constraints->num_defval; ++i) {
    const AttrDefault& value = constraints->defval[i];
    if (TupleDescAttr(type, value.adnum - 1)->attgenerated != '\0' &&
        test(static_cast<Node*>(stringToNode(value.adbin))))
      return true;
  }
  return false;
}

bool has_code(HeapTuple index, AttrNumber column, CodeTest test) {
  bool isnull;
  const Datum source = SysCacheGetAttr(INDEXRELID, index, column, &isnull);
  return !isnull && test(static_cast<Node*>(stringToNode(TextDatumGetCString(source))));
}

bool has_code(Oid index, CodeTest test) {
  bool found = true;
  read_catalog<FormData_pg_index>(INDEXRELID, index, [&](const auto&, HeapTuple tuple) {
    found = has_code(tuple, Anum_pg_index_indexprs, test) ||
            has_code(tuple, Anum_pg_index_indpred, test);
  });
  return found;
}

bool has_index_with_code(Relation table, CodeTest test) {
  if (!table->rd_rel->relhasindex) return false;
  bool found = false;
  List* indexes = RelationGetIndexList(table);
  for (const Oid index : each_oid(indexes)) found = found || has_code(index, test);
  list_free(indexes);
  return found;
}

}  // namespace

bool checks_by_code(Relation table, CodeTest test) {
  const TupleConstr* constraints = RelationGetDescr(table)->constr;
  if (constraints == nullptr) return false;
  for (int i = 0; i < constraints->num_check; ++i)
    if (test(static_cast<Node*>(stringToNode(constraints->check[i].ccbin)))) return true;
  return false;
}

bool computes_by_code(Relation table, CodeTest test) {
  return has_computed_column(RelationGetDescr(table), test) || has_index_with_code(table, test);
}

bool runs_code_for_rows(Relation table, CodeTest test) {
  return checks_by_code(table, test) || computes_by_code(table, test);
}

}  // namespace streamfilter::pg
