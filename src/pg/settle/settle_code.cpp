// The statements of streamfilter_settle() cast and compare as the types of the filter and of both
// tables say, and run as the caller, who has chosen none of them. They are parsed, and every cast
// and function in them is looked at.
//
// Owners are asked, not what the code is: an owner may replace a function, a cast or the checks of
// a domain at any time.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "utils/builtins.h"
#include "utils/plancache.h"
#include "utils/regproc.h"
#include "utils/typcache.h"
}

#include <initializer_list>

#include "pg/catalog/lookup.hpp"
#include "pg/key/trusted_code.hpp"
#include "pg/server/syscache.hpp"
#include "pg/settle/settle_code.hpp"

namespace streamfilter::pg {
namespace {

// ---- owners ------------------------------------------------------------------------------------

void check_owner(Oid owner, const SettleTask* task, const char* kind, const char* what) {
  if (owner == GetUserId() || superuser_arg(owner)) return;
  ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
          errmsg("cannot settle rows of table \"%s\" by code of role \"%s\"",
                 get_rel_name(task->diverted), name_of_role(owner)),
          errdetail("%s %s belongs to that role, and its code would run as role \"%s\".", kind,
                    what, name_of_role(GetUserId())),
          errhint("Call streamfilter_settle() as role \"%s\", or give the columns of the filter "
                  "and of both tables types for which no code of that role runs.",
                  name_of_role(owner)));
}

void check_function(Oid function, const SettleTask* task) {
  if (!OidIsValid(function) || is_trusted_function(function)) return;
  check_owner(read_field(PROCOID, function, &FormData_pg_proc::proowner, InvalidOid), task,
              "Function", format_procedure(function));
}

// ---- types -------------------------------------------------------------------------------------

List* with_columns_of(Oid composite, List* types) {
  TupleDesc columns = lookup_rowtype_tupdesc_copy(composite, -1);
  for (int i = 0; i < columns->natts; ++i)
    if (!TupleDescAttr(columns, i)->attisdropped)
      types = list_append_unique_oid(types, TupleDescAttr(columns, i)->atttypid);
  return types;
}

// The type and all in it that are not built in, each once: types can contain one another many
// levels deep.
List* types_in(Oid type) {
  List* types = list_make1_oid(type);
  for (int i = 0; i < list_length(types); ++i) {
    CHECK_FOR_INTERRUPTS();
    type = list_nth_oid(types, i);
    if (type < FirstNormalObjectId) continue;
    Oid inner = InvalidOid;
    switch (get_typtype(type)) {
      case TYPTYPE_DOMAIN:
        inner = read_field(TYPEOID, type, &FormData_pg_type::typbasetype, InvalidOid);
        break;
      case TYPTYPE_COMPOSITE: types = with_columns_of(type, types); break;
      case TYPTYPE_RANGE: inner = get_range_subtype(type); break;
      case TYPTYPE_MULTIRANGE: inner = get_multirange_range(type); break;
      default: inner = get_element_type(type);
    }
    if (OidIsValid(inner)) types = list_append_unique_oid(types, inner);
  }
  return types;
}

// A value becomes one of the type, or ceases to be one.
void check_cast(Oid type, const SettleTask* task) {
  ListCell* cell;
  foreach (cell, types_in(type))
    if (const Oid part = lfirst_oid(cell); part >= FirstNormalObjectId)
      check_owner(read_field(TYPEOID, part, &FormData_pg_type::typowner, InvalidOid), task, "Type",
                  format_type_be(part));
}

// Values of the type are compared, sorted or hashed. Superusers make operator classes, but of
// functions of any owner.
void check_comparison(Oid type, const SettleTask* task) {
  ListCell* cell;
  foreach (cell, types_in(type)) {
    const TypeCacheEntry* entry =
        lookup_type_cache(lfirst_oid(cell), TYPECACHE_EQ_OPR | TYPECACHE_CMP_PROC |
                                                TYPECACHE_HASH_PROC | TYPECACHE_HASH_EXTENDED_PROC);
    check_function(get_opcode(entry->eq_opr), task);
    check_function(entry->cmp_proc, task);
    check_function(entry->hash_proc, task);
    check_function(entry->hash_extended_proc, task);
  }
}

// ---- expressions -------------------------------------------------------------------------------

bool check_called_function(Oid function, void* task) {
  check_function(function, static_cast<const SettleTask*>(task));
  return false;
}

// The value that the node casts; nullptr: it casts none, or calls no code for it.
const Node* cast_value(const Node* node) {
  switch (nodeTag(node)) {
    case T_CoerceToDomain:
      return reinterpret_cast<Node*>(reinterpret_cast<const CoerceToDomain*>(node)->arg);
    case T_CoerceViaIO:
      return reinterpret_cast<Node*>(reinterpret_cast<const CoerceViaIO*>(node)->arg);
    case T_ArrayCoerceExpr:
      return reinterpret_cast<Node*>(reinterpret_cast<const ArrayCoerceExpr*>(node)->arg);
    case T_ConvertRowtypeExpr:
      return reinterpret_cast<Node*>(reinterpret_cast<const ConvertRowtypeExpr*>(node)->arg);
    case T_FuncExpr: {
      const auto* call = reinterpret_cast<const FuncExpr*>(node);
      const bool casts =
          call->funcformat == COERCE_EXPLICIT_CAST || call->funcformat == COERCE_IMPLICIT_CAST;
      return casts ? static_cast<Node*>(linitial(call->args)) : nullptr;
    }
    default: return nullptr;
  }
}

bool check_node(Node* node, void* context) {
  const auto* task = static_cast<const SettleTask*>(context);
  if (node == nullptr) return false;
  if (IsA(node, Query))
    return SF_WALK_QUERY(reinterpret_cast<Query*>(node), check_node, context, 0);
  check_functions_in_node(node, check_called_function, context);
  if (const Node* value = cast_value(node)) {
    check_cast(exprType(value), task);
    check_cast(exprType(node), task);
  } else if (IsA(node, OpExpr)) {
    ListCell* cell;
    foreach (cell, reinterpret_cast<OpExpr*>(node)->args)
      check_comparison(exprType(static_cast<Node*>(lfirst(cell))), task);
  } else if (IsA(node, TargetEntry) && reinterpret_cast<TargetEntry*>(node)->ressortgroupref != 0) {
    check_comparison(exprType(reinterpret_cast<Node*>(reinterpret_cast<TargetEntry*>(node)->expr)),
                     task);
  }
  return SF_WALK_EXPRESSION(node, check_node, context);
}

// SPI reports what is wrong with the statement, as it does when it runs it. Its own queries have
// defaults of columns in them.
void check_statement(const SettleTask* task, const char* text, Oid* types, int count) {
  SPIPlanPtr plan = SPI_prepare(text, count, types);
  if (plan == nullptr) elog(ERROR, "%s: %s", text, SPI_result_code_string(SPI_result));
  ListCell* cell;
  foreach (cell, SPI_plan_get_plan_sources(plan)) {
    const auto* source = static_cast<const CachedPlanSource*>(lfirst(cell));
    auto* parsed = static_cast<RawStmt*>(copyObjectImpl(source->raw_parse_tree));
    check_node(
        reinterpret_cast<Node*>(parse_analyze_fixedparams(parsed, text, types, count, nullptr)),
        const_cast<SettleTask*>(task));
  }
  SPI_freeplan(plan);
}

// ---- indexes -----------------------------------------------------------------------------------

void check_expressions(const SettleTask* task, HeapTuple index, TupleDesc columns) {
  for (const int column : {Anum_pg_index_indexprs, Anum_pg_index_indpred}) {
    bool isnull;
    const Datum source = heap_getattr(index, column, columns, &isnull);
    if (!isnull)
      check_node(static_cast<Node*>(stringToNode(TextDatumGetCString(source))),
                 const_cast<SettleTask*>(task));
  }
}

// Planning runs constant parts of them, and a row that comes back is entered.
void check_indexes(const SettleTask* task, Oid table) {
  ListCell* cell;
  foreach (cell, find_all_inheritors(table, NoLock, nullptr))
    scan_catalog<FormData_pg_index>(
        IndexRelationId, IndexIndrelidIndexId, {{Anum_pg_index_indrelid, lfirst_oid(cell)}},
        [&](const FormData_pg_index&, HeapTuple index, TupleDesc columns) {
          check_expressions(task, index, columns);
        });
}

}  // namespace

void check_code_of_settling(const SettleTask* task, bool since) {
  Oid time = TIMESTAMPTZOID;
  Oid places[] = {OIDARRAYOID, TIDARRAYOID, XIDARRAYOID};
  check_indexes(task, task->diverted);
  check_indexes(task, task->target);
  // All others are made of parts of these.
  check_statement(task, query_for_places(task, since), &time, since ? 1 : 0);
  check_statement(task, query_for_rows(task), places, lengthof(places));
  check_statement(task, statement_for_restoring(task), places, lengthof(places));
}

}  // namespace streamfilter::pg
