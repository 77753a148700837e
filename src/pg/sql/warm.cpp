// streamfilter_warm: a filter remembers the rows of a table.
#include "pg/server/postgres.hpp"

extern "C" {
#include "parser/parser.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/filter_keys.hpp"
#include "pg/handle/waiting_code.hpp"
#include "pg/server/progress.hpp"
#include "pg/settle/settle_task.hpp"
#include "pg/trigger/judge_row.hpp"

namespace streamfilter::pg {
namespace {

// ---- conditions ---------------------------------------------------------------------------------

// Conditions that users write as text, to become part of a query.

// The error position is one in this text, not in the client's statement.
void say_where(void* arg) {
  const int position = geterrposition();
  if (position <= 0) return;
  errposition(0);
  internalerrposition(position);
  internalerrquery(static_cast<const char*>(arg));
}

// Parses as PL/pgSQL parses an expression: the part after SELECT.
const SelectStmt* parse(const char* text) {
  ErrorContextCallback context = {error_context_stack, say_where, const_cast<char*>(text)};
  error_context_stack = &context;
  const List* statements = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
  error_context_stack = context.previous;
  return castNode(SelectStmt, linitial_node(RawStmt, statements)->stmt);
}

bool is_one_expression(const SelectStmt* parsed) {
  return parsed->op == SETOP_NONE && list_length(parsed->targetList) == 1 &&
         linitial_node(ResTarget, parsed->targetList)->name == nullptr &&
         parsed->distinctClause == NIL && parsed->fromClause == NIL &&
         parsed->whereClause == nullptr && parsed->groupClause == NIL &&
         parsed->havingClause == nullptr && parsed->windowClause == NIL &&
         parsed->sortClause == NIL && parsed->limitOffset == nullptr &&
         parsed->limitCount == nullptr && parsed->lockingClause == NIL;
}

// Raises 42601 unless the text is one expression, so that it keeps its meaning between parentheses.
// The message names `argument` and `function`.
void check_condition(const char* text, const char* argument, const char* function) {
  if (is_one_expression(parse(text))) return;
  ereport(ERROR, errcode(ERRCODE_SYNTAX_ERROR),
          errmsg("argument \"%s\" of %s must be one condition", argument, function),
          errdetail("It is \"%s\".", text),
          errhint("Write what follows WHERE, as an expression of type boolean."));
}

// ---- warming ------------------------------------------------------------------------------------

constexpr const char* kFunction = "streamfilter_warm";
constexpr int kBatch = 512;

// Columns of the table, in the order of the filter's.
struct Columns {
  int count;
  const char** names;
};

void check_column(Oid table, const char* name) {
  if (const AttrNumber number = get_attnum(table, name); number > 0) return;
  NearestName nearest(name);
  for (AttrNumber i = 1;; ++i) {
    const char* known = get_attname(table, i, true);
    if (known == nullptr) break;
    nearest.consider(known);
  }
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_COLUMN),
          errmsg("column \"%s\" of relation \"%s\" does not exist", name, get_rel_name(table)),
          nearest.name() != nullptr
              ? errhint("Perhaps you meant the column \"%s\".", nearest.name())
              : errhint("Name the table's columns in the order of the filter's."));
}

// By default, the columns of the same names.
Columns columns_of(const FilterRelation* filter, Oid table, ArrayType* given) {
  Columns columns;
  if (given == nullptr) {
    columns.count = filter->column_count;
    columns.names = allocate<const char*>(columns.count);
    for (int i = 0; i < columns.count; ++i) columns.names[i] = filter->columns[i].name;
  } else {
    columns.names = names_in(given, &columns.count, kFunction);
    check_column_count(filter, columns.count, kFunction);
  }
  for (int i = 0; i < columns.count; ++i) check_column(table, columns.names[i]);
  return columns;
}

// Newest rows last, for filters that forget: by the time column if there is one, otherwise in table
// order.
const char* query_for(const FilterRelation* filter, Oid table, const Columns& columns,
                      const char* condition) {
  TextBuffer query;
  const char* time = nullptr;
  for (int i = 0; i < columns.count; ++i) {
    appendStringInfo(&query, "%s t.%s", i == 0 ? "SELECT" : ",",
                     quote_identifier(columns.names[i]));
    if (&filter->columns[i] == filter->time) time = columns.names[i];
  }
  appendStringInfo(&query, " FROM %s AS t", qualified_name(table));
  if (condition != nullptr) appendStringInfo(&query, " WHERE (%s\n)", condition);
  if (time != nullptr)
    appendStringInfo(&query, " ORDER BY t.%s NULLS FIRST", quote_identifier(time));
  return query.data;
}

// Puts the fetched rows in the filter. `waits`: the query may wait for other sessions.
void remember_rows(KeyCall* call, TupleDesc source, bool waits) {
  FilterHandle* filter = call->keys.filter;
  auto* elements = allocate<Element>(SPI_processed);
  auto* seen = allocate<bool>(SPI_processed);
  auto* values = allocate<Datum>(source->natts);
  auto* isnull = allocate<bool>(source->natts);
  auto* row = allocate<NullableDatum>(source->natts);
  auto* has_key = allocate<bool>(SPI_processed);
  const int count = static_cast<int>(SPI_processed);
  for (int i = 0; i < count; ++i) {
    heap_deform_tuple(SPI_tuptable->vals[i], source, values, isnull);
    for (int j = 0; j < source->natts; ++j) row[j] = {values[j], isnull[j]};
    has_key[i] = build_element(&call->keys, row, &elements[i]);
    if (has_key[i]) bound_time(filter, &elements[i]);
  }
  if (!waits) filter->route = route_in_query(&call->keys);
  judge_keys(filter, elements, has_key, count, Outcome::discarded, seen);
}

// Makes scans start at the table's first row, not where another scan is.
int begin_scans_at_start() {
  const int level = NewGUCNestLevel();
  set_config_option("synchronize_seqscans", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
                    true, 0, false);
  return level;
}

uint64 read_table(Oid filter_id, Oid table, const Columns& columns, const char* query) {
  const int settings = begin_scans_at_start();
  Portal portal = open_query(query, kFunction);
  TupleDesc source = portal->tupDesc;
  auto* types = allocate<Oid>(source->natts);
  for (int i = 0; i < source->natts; ++i) types[i] = TupleDescAttr(source, i)->atttypid;
  KeyCall call;
  init_key_call(&call, kFunction, types, source->natts, false);
  auto* what = allocate<const char*>(source->natts);
  for (int i = 0; i < source->natts; ++i)
    what[i] = psprintf("column \"%s\" of relation \"%s\"", columns.names[i], get_rel_name(table));
  call.what = what;
  // Reports wrong key types even if the table has no rows.
  begin_key_call(&call, filter_id, Use::insert);
  Progress progress(Command::warm, filter_id, psprintf("warming from \"%s\"", get_rel_name(table)));
  const bool waits = may_query_wait(portal->queryDesc, filter_id);
  uint64 rows = 0;
  read_in_batches(portal, kBatch, &progress, [&] {
    begin_key_call(&call, filter_id, Use::insert);
    note_asked(call.keys.filter);
    remember_rows(&call, source, waits);
    rows += SPI_processed;
    return true;
  });
  progress.end();
  AtEOXact_GUC(true, settings);
  return rows;
}

void check_has_rows(const FilterRelation* filter, Oid table) {
  const char kind = get_rel_relkind(table);
  switch (kind) {
    case RELKIND_RELATION:
    case RELKIND_PARTITIONED_TABLE:
    case RELKIND_VIEW:
    case RELKIND_MATVIEW:
    case RELKIND_FOREIGN_TABLE: return;
    default:
      ereport(
          ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
          errmsg("filter \"%s\" cannot be warmed from \"%s\"", filter->name, get_rel_name(table)),
          errdetail_relkind_not_supported(kind), errhint("Name a table or a view."));
  }
}

}  // namespace

// streamfilter_warm(filter regclass, "table" regclass [, columns text[] [, "where" text]]) → rows
// read. Uses the caller's rights: INSERT on the filter, SELECT on the table.
SF_FUNCTION(streamfilter_warm) {
  require_writable("streamfilter_warm()");
  require_arguments(fcinfo, {0, 1});
  const Oid filter_id = PG_GETARG_OID(0), table = PG_GETARG_OID(1);
  require_one_node(filter_id, "streamfilter_warm()",
                   "run_command_on_shards('...', $$SELECT streamfilter_warm('...', '%s')$$)", true);
  FilterHandle* filter = filter_for_use(filter_id, Use::insert);
  if (get_rel_name(table) == nullptr) raise_gone(table);
  if (table == filter_id || is_filter(table))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("filter \"%s\" cannot be warmed from filter \"%s\"", filter->relation->name,
                   get_rel_name(table)),
            errdetail("A filter does not know its keys, so they cannot be listed."),
            errhint("Name the table that has the rows, or merge a value: streamfilter_merge()."));
  check_has_rows(filter->relation, table);
  SPI_connect();
  const Columns columns =
      columns_of(filter->relation, table, PG_ARGISNULL(2) ? nullptr : PG_GETARG_ARRAYTYPE_P(2));
  const char* condition = PG_ARGISNULL(3) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(3));
  if (condition != nullptr) check_condition(condition, "where", kFunction);
  const uint64 rows =
      read_table(filter_id, table, columns, query_for(filter->relation, table, columns, condition));
  SPI_finish();
  PG_RETURN_INT64(static_cast<int64>(rows));
}

}  // namespace streamfilter::pg
