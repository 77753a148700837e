#include "pg/server/postgres.hpp"

extern "C" {
#include "access/relation.h"
#include "access/transam.h"
#include "catalog/indexing.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "utils/plancache.h"
#include "utils/regproc.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"
}

#include "pg/binding/trigger_definition.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/server/syscache.hpp"
#include "pg/settle/settle_query.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kPlaces = "unnest($1, $2, $3) AS b(part, place, version)";
// The planner knows that ctid is unique. With three equalities it would expect a single row, and
// read the table once for each.
constexpr const char* kThese =
    "d.ctid OPERATOR(pg_catalog.=) b.place AND CASE WHEN d.tableoid OPERATOR(pg_catalog.=) b.part "
    "THEN d.xmin OPERATOR(pg_catalog.=) b.version END";

const char* type_name(Oid type, int32 typmod) {
  return format_type_extended(type, typmod, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
}

void append_cast(StringInfo text, Oid from, int32 from_typmod, Oid to, int32 typmod) {
  if (from != to || (typmod >= 0 && typmod != from_typmod))
    appendStringInfo(text, "::%s", type_name(to, typmod));
}

// The value with the table's type.
void append_value(StringInfo text, const char* row, const SettleColumn& column) {
  appendStringInfo(text, "(%s.%s)", row, quote_identifier(column.name));
  if (row[0] == 'd')
    append_cast(text, column.type_there, column.typmod_there, column.type, column.typmod);
}

// The value as the filter compares it.
void append_key(StringInfo text, const char* row, const SettleColumn& column) {
  appendStringInfoChar(text, '(');
  append_value(text, row, column);
  append_cast(text, column.type, column.typmod, column.compared_as, column.compared_typmod);
  if (OidIsValid(column.collation))
    appendStringInfo(text, " COLLATE %s", generate_collation_name(column.collation));
  appendStringInfoChar(text, ')');
}

const char* comparison_of(Oid type) {
  const char* text = equality_operator(type);
  if (text == nullptr)
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_FUNCTION),
            errmsg("could not identify an equality operator for type %s", format_type_be(type)));
  return text;
}

void append_some_null(StringInfo text, const char* row, const SettleTask* task) {
  const char* between = "";
  for (int i = 0; i < task->count; ++i) {
    if (!task->columns[i].is_key) continue;
    appendStringInfo(text, "%s%s.%s IS NULL", between, row,
                     quote_identifier(task->columns[i].name));
    between = " OR ";
  }
}

// Whether a row of this name has no key: then there is none that is equal to it.
void append_no_key(StringInfo text, const char* row, const SettleTask* task) {
  if (task->equal_nulls)
    appendStringInfoString(text, "false");
  else
    append_some_null(text, row, task);
}

// How keys are held against each other: by what an index or a hash join finds them; or with two
// NULLs as equal, for rows that have one.
enum class Equality : uint8 { plain, of_nulls };

void append_comparison(StringInfo text, const SettleColumn& column, Equality equality) {
  const bool nulls = equality == Equality::of_nulls;
  const char* open = nulls ? "ARRAY[" : "";
  const char* close = nulls ? "]" : "";
  appendStringInfoString(text, open);
  append_key(text, "t", column);
  appendStringInfo(text, "%s %s %s", close,
                   nulls ? "OPERATOR(pg_catalog.=)" : comparison_of(column.compared_as), open);
  append_key(text, "d", column);
  appendStringInfoString(text, close);
}

void append_known(StringInfo text, const SettleTask* task, Equality equality) {
  appendStringInfo(text, "EXISTS (SELECT FROM %s AS t WHERE ", qualified_name(task->target));
  const char* between = "";
  for (int i = 0; i < task->count; ++i) {
    if (!task->columns[i].is_key) continue;
    appendStringInfoString(text, between);
    append_comparison(text, task->columns[i], equality);
    between = " AND ";
  }
  if (equality == Equality::of_nulls) {
    appendStringInfoString(text, " AND (");
    append_some_null(text, "d", task);
    appendStringInfoChar(text, ')');
  }
  appendStringInfoChar(text, ')');
}

void append_unknown(StringInfo text, const SettleTask* task) {
  appendStringInfoString(text, " AND NOT ");
  append_known(text, task, Equality::plain);
  if (!task->equal_nulls) return;
  appendStringInfoString(text, " AND NOT ");
  append_known(text, task, Equality::of_nulls);
}

void append_keys(StringInfo text, const char* row, const SettleTask* task) {
  const char* between = "";
  for (int i = 0; i < task->count; ++i) {
    if (!task->columns[i].is_key) continue;
    appendStringInfoString(text, between);
    append_key(text, row, task->columns[i]);
    between = ", ";
  }
}

// Order of rows of one key.
void append_order(StringInfo text, const char* row, const SettleTask* task) {
  for (int i = 0; i < task->count; ++i) {
    if (!task->columns[i].is_time) continue;
    append_value(text, row, task->columns[i]);
    appendStringInfoString(text, ", ");
  }
  if (task->has_time && row[0] == 'd') appendStringInfo(text, "%s.diverted_at, ", row);
  appendStringInfo(text, "%s.tableoid, %s.ctid", row, row);
}

// ---- what is moved -----------------------------------------------------------------------------

Form_pg_attribute attribute(Relation table, int number) {
  return TupleDescAttr(RelationGetDescr(table), number - 1);
}

// Columns of the table that moved rows keep: names or values. A value that an assignment cast had
// put into another type comes back by an explicit cast, because often there is no other way back.
const char* list_moved(const SettleTask* task, bool values) {
  StringInfoData list;
  initStringInfo(&list);
  Relation target = relation_open(task->target, AccessShareLock);
  Relation diverted = relation_open(task->diverted, AccessShareLock);
  for (int i = 1; i <= RelationGetNumberOfAttributes(target); ++i) {
    const Form_pg_attribute to = attribute(target, i);
    if (to->attisdropped || to->attgenerated != '\0') continue;
    const AttrNumber from = find_exactly(diverted, NameStr(to->attname));
    if (from == InvalidAttrNumber || attribute(diverted, from)->attgenerated != '\0') continue;
    const char* name = quote_identifier(NameStr(to->attname));
    if (list.len > 0) appendStringInfoString(&list, ", ");
    appendStringInfo(&list, values ? "(d.%s)" : "%s", name);
    if (!values) continue;
    append_cast(&list, attribute(diverted, from)->atttypid, -1, to->atttypid, -1);
    appendStringInfo(&list, " AS %s", name);
  }
  relation_close(diverted, NoLock);
  relation_close(target, NoLock);
  return list.data;
}

// The rows to move: the first of each key, and each row without a key.
void append_first_rows(StringInfo text, const SettleTask* task) {
  appendStringInfoString(text,
                         "SELECT d.tableoid AS part, d.ctid AS place, d.xmin AS version, "
                         "pg_catalog.row_number() OVER (PARTITION BY ");
  append_keys(text, "d", task);
  appendStringInfoString(text, ", CASE WHEN ");
  append_no_key(text, "d", task);
  appendStringInfoString(text, " THEN d.tableoid END, CASE WHEN ");
  append_no_key(text, "d", task);
  appendStringInfoString(text, " THEN d.ctid END ORDER BY ");
  append_order(text, "d", task);
  appendStringInfo(text, ") AS number FROM %s AS d, %s WHERE %s", qualified_name(task->diverted),
                   kPlaces, kThese);
  append_unknown(text, task);
}

// Limits the query to the diverted rows that this call is about.
void append_wanted(StringInfo text, const SettleTask* task, bool since) {
  if (since) appendStringInfoString(text, " AND d.diverted_at OPERATOR(pg_catalog.>=) $1");
  if (task->others_divert)
    appendStringInfo(text, " AND d.filter::pg_catalog.regclass OPERATOR(pg_catalog.=) '%u'",
                     task->filter->relid);
}

}  // namespace

const char* query_for_places(const SettleTask* task, bool since) {
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfo(&text, "SELECT d.tableoid, d.ctid, d.xmin FROM %s AS d WHERE true",
                   qualified_name(task->diverted));
  append_wanted(&text, task, since);
  return text.data;
}

const char* query_for_rows(const SettleTask* task) {
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfoString(&text, "SELECT b.part, b.place, b.version");
  for (int i = 0; i < task->count; ++i) {
    appendStringInfoString(&text, ", ");
    append_value(&text, "d", task->columns[i]);
  }
  appendStringInfo(&text, " FROM %s AS d, %s WHERE %s", qualified_name(task->diverted), kPlaces,
                   kThese);
  if (task->keep) append_unknown(&text, task);
  return text.data;
}

const char* statement_for_known(const SettleTask* task, bool nulls) {
  StringInfoData text;
  initStringInfo(&text);
  const char* name = qualified_name(task->diverted);
  if (task->keep)
    appendStringInfo(&text, "SELECT pg_catalog.count(*) FROM %s AS d, %s", name, kPlaces);
  else
    appendStringInfo(&text, "DELETE FROM %s AS d USING %s", name, kPlaces);
  appendStringInfo(&text, " WHERE %s AND ", kThese);
  append_known(&text, task, nulls ? Equality::of_nulls : Equality::plain);
  return text.data;
}

const char* statement_for_all_known(const SettleTask* task, bool since, bool nulls) {
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfo(&text, "DELETE FROM %s AS d WHERE ", qualified_name(task->diverted));
  append_known(&text, task, nulls ? Equality::of_nulls : Equality::plain);
  append_wanted(&text, task, since);
  return text.data;
}

const char* statement_for_restoring(const SettleTask* task) {
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfoString(&text, "WITH b AS (SELECT part, place, version FROM (");
  append_first_rows(&text, task);
  appendStringInfo(&text,
                   ") AS f WHERE number OPERATOR(pg_catalog.=) 1), gone AS (DELETE FROM %s AS d "
                   "USING b WHERE %s RETURNING %s), ",
                   qualified_name(task->diverted), kThese, list_moved(task, true));
  appendStringInfo(
      &text,
      "come AS (INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM gone RETURNING 1) "
      "SELECT (SELECT pg_catalog.count(*) FROM gone), (SELECT pg_catalog.count(*) FROM come)",
      qualified_name(task->target), list_moved(task, false), list_moved(task, false));
  return text.data;
}

const char* query_for_duplicates(const SettleTask* task) {
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfo(&text,
                   "SELECT pg_catalog.sum(g.number OPERATOR(pg_catalog.-) 1)::bigint FROM (SELECT "
                   "pg_catalog.count(*) AS number FROM %s AS t WHERE NOT (",
                   qualified_name(task->target));
  append_no_key(&text, "t", task);
  appendStringInfoString(&text, ") GROUP BY ");
  append_keys(&text, "t", task);
  appendStringInfoString(&text, ") AS g");
  return text.data;
}

const char* statement_for_duplicates(const SettleTask* task) {
  StringInfoData text;
  initStringInfo(&text);
  const char* name = qualified_name(task->target);
  appendStringInfo(&text,
                   "DELETE FROM %s AS d USING (SELECT t.tableoid AS part, t.ctid AS place, t.xmin "
                   "AS version, pg_catalog.row_number() OVER (PARTITION BY ",
                   name);
  append_keys(&text, "t", task);
  appendStringInfoString(&text, " ORDER BY ");
  append_order(&text, "t", task);
  appendStringInfo(&text, ") AS number FROM %s AS t WHERE NOT (", name);
  append_no_key(&text, "t", task);
  appendStringInfo(&text, ")) AS b WHERE %s AND b.number OPERATOR(pg_catalog.>) 1", kThese);
  return text.data;
}

// ---- whose code runs ----------------------------------------------------------------------------

// The statements of streamfilter_settle() cast and compare as the types of the filter and of both
// tables say, and run as the caller, who has chosen none of them. They are parsed, and every cast
// and function in them is looked at.
//
// Owners are asked, not what the code is: an owner may replace a function, a cast or the checks of
// a domain at any time.

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
