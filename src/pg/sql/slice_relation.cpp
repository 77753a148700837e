// How the definition of a filter travels: the producer of a stream sends it to the servers that are
// to hold its slices (distributed-filtering.txt, section 3.1), and the first who does so makes the
// relation there.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_foreign_server.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
}

#include "core/kind/filter_ops.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/producer_agreement.hpp"
#include "pg/handle/hierarchy.hpp"
#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kServer[] = "streamfilter";

const char* text_argument(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(number));
}

// `kind(name=value, name='value, value')` as OPTIONS.
void append_options(StringInfo command, const char* definition) {
  const Size kind = strcspn(definition, "(");
  appendStringInfo(command, "kind %s", quote_literal_cstr(pnstrdup(definition, kind)));
  const char* at = definition + kind + 1;
  while (*at != ')' && *at != '\0') {
    at += strspn(at, ", ");
    const Size name = strcspn(at, "=");
    appendStringInfo(command, ", %s ", quote_identifier(pnstrdup(at, name)));
    at += name + 1;
    const bool quoted = *at == '\'';
    if (quoted) ++at;
    const Size value = strcspn(at, quoted ? "'" : ",)");
    appendStringInfoString(command, quote_literal_cstr(pnstrdup(at, value)));
    at += value + (quoted ? 1 : 0);
  }
}

void append_option(StringInfo command, const char* name, const char* value) {
  if (value != nullptr) appendStringInfo(command, ", %s %s", name, quote_literal_cstr(value));
}

// The definition comes from another server: nothing but what it says may become part of the
// command.
void check_definition(const char* text) {
  Definition definition;
  Problem problem;
  std::size_t used;
  const Size length = strlen(text);
  if (!parse_definition(text, length, definition, used, problem)) raise(problem);
  if (used != length)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("invalid definition of a filter: \"%s\"", text));
}

void make_relation(FunctionCallInfo fcinfo, const char* schema, const char* name,
                   const char* definition) {
  check_definition(definition);
  StringInfoData command;
  initStringInfo(&command);
  appendStringInfo(&command, "CREATE FOREIGN TABLE %s (hash bigint) SERVER %s OPTIONS (",
                   quote_qualified_identifier(schema, name), kServer);
  append_options(&command, definition);
  append_option(&command, "conflict", text_argument(fcinfo, 3));
  append_option(&command, "persistence", text_argument(fcinfo, 4));
  append_option(&command, "producer", text_argument(fcinfo, 5));
  appendStringInfoChar(&command, ')');
  SPI_connect();
  if (SPI_execute(command.data, false, 0) != SPI_OK_UTILITY)
    elog(ERROR, "could not create the relation of a filter");
  SPI_finish();
  CommandCounterIncrement();
}

// Does the relation hold slices of a filter elsewhere?
void check_relation(const FilterRelation* relation) {
  if (!is_remote(relation) && relation->host.producer != nullptr && relation->key_count == 1 &&
      relation->column_count == 1 && relation->columns[0].type == INT8OID)
    return;
  ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
          errmsg("filter \"%s\" exists, but does not hold slices of a filter on another server",
                 relation->name),
          errhint("Give one of the two filters another name or schema."));
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_hashes_define(schema_name text, table_name text, wanted text, conflict text,
// persistence text, producer text, OUT definition text, OUT made boolean): makes the relation that
// holds the slices unless it is there, and tells its definition. If `wanted` is NULL it is only
// looked for: NULL if it is not there.
SF_FUNCTION(streamfilter_hashes_define) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  const char* schema = text_argument(fcinfo, 0);
  const char* name = text_argument(fcinfo, 1);
  const char* wanted = text_argument(fcinfo, 2);
  if (schema == nullptr || name == nullptr)
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("schema and name of a filter must not be NULL"));
  RangeVar* relation_name = makeRangeVar(pstrdup(schema), pstrdup(name), -1);
  // Of two producers that come at once, one makes it.
  if (wanted != nullptr) {
    LockDatabaseObject(ForeignServerRelationId, GetForeignServerByName(kServer, false)->serverid, 0,
                       ShareUpdateExclusiveLock);
    AcceptInvalidationMessages();
  }
  Datum values[2] = {};
  bool isnull[2] = {};
  Oid relid = RangeVarGetRelid(relation_name, NoLock, true);
  const bool made = !OidIsValid(relid) && wanted != nullptr;
  if (made) {
    make_relation(fcinfo, schema, name, wanted);
    relid = RangeVarGetRelid(relation_name, NoLock, false);
  }
  isnull[0] = !OidIsValid(relid);
  if (OidIsValid(relid)) {
    LockRelationOid(relid, AccessShareLock);
    const FilterRelation* relation = load_filter_relation(relid);
    check_relation(relation);
    if (wanted != nullptr)
      check_producer_agrees(
          relation, {text_argument(fcinfo, 3), text_argument(fcinfo, 4), text_argument(fcinfo, 5)});
    char found[kMaxDefinitionText];
    print_definition(relation->definition.parameters, found, sizeof found);
    values[0] = CStringGetTextDatum(found);
  }
  values[1] = BoolGetDatum(made);
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
