// A producer needs to know only one of the servers (Koloniari et al. 2011, section 3.1): the text
// that describe_producer has written there names the columns, options and other servers of a
// filter. No part of it enters a command unquoted or unparsed.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_foreign_server.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "utils/acl.h"
#include "utils/regproc.h"
#include "utils/ruleutils.h"
}

#include "pg/catalog/definition_commands.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/fdw/import_foreign_schema.hpp"
#include "pg/remote/connect.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

// Rows: filter; 'c', name, type, collation, role for each of its columns in order; 'o', name, value
// for options; 's', name of the server, option, value.
const char* kQuery =
    "SELECT c.relname, x.item, x.name, x.first, x.second, x.third "
    "FROM pg_catalog.pg_foreign_table t "
    "JOIN pg_catalog.pg_class c ON c.oid = t.ftrelid "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
    "CROSS JOIN LATERAL (SELECT option_value::pg_catalog.jsonb AS producer "
    "  FROM pg_catalog.pg_options_to_table(t.ftoptions) WHERE option_name = 'producer') p "
    "CROSS JOIN LATERAL ("
    "  SELECT 'c' AS item, number, e->>'name' AS name, e->>'type' AS first,"
    "         e->>'collation' AS second, e->>'role' AS third"
    "  FROM pg_catalog.jsonb_array_elements(producer->'columns') WITH ORDINALITY y(e, number)"
    "  UNION ALL"
    "  SELECT 'o', 0, key, value, NULL, NULL FROM pg_catalog.jsonb_each_text(producer->'options')"
    "  UNION ALL"
    "  SELECT 's', number, e->>'name', key, value, NULL"
    "  FROM pg_catalog.jsonb_array_elements(producer->'servers') WITH ORDINALITY y(e, number),"
    "       pg_catalog.jsonb_each_text(e)) x "
    "WHERE n.nspname = $1 ORDER BY c.relname, x.item, x.number, x.first";

constexpr int kColumns = 6;

struct Row {
  const char* values[kColumns];  // nullptr: NULL
  const char* filter() const { return values[0]; }
  char item() const { return values[1][0]; }
  const char* name() const { return values[2]; }
  const char* first() const { return values[3]; }
  const char* second() const { return values[4]; }
  const char* third() const { return values[5]; }
};

struct Rows {
  Row* rows;
  int count;
};

constexpr Size kMaxText = 1024 * 1024;
constexpr ColumnShape kRowColumns[kColumns] = {
    {NAMEOID, false, true, NAMEDATALEN}, {TEXTOID, false, true, 1},
    {TEXTOID, false, true, kMaxText},    {TEXTOID, false, true, kMaxText},
    {TEXTOID, false, true, kMaxText},    {TEXTOID, false, true, kMaxText}};
constexpr uint64 kMaxRowBytes = 64 * 1024 * 1024;  // of some 20,000 filters
constexpr RowShape kRows = {kRowColumns, kColumns, 0, 1'000'000, kMaxRowBytes};

// libpq's memory, freed with a context.
struct KeptResult {
  MemoryContextCallback callback;
  PGresult* result;
};

void clear_result(void* kept) { PQclear(static_cast<KeptResult*>(kept)->result); }

KeptResult* make_kept_result() {
  auto* kept = static_cast<KeptResult*>(palloc0(sizeof(KeptResult)));
  kept->callback.func = clear_result;
  kept->callback.arg = kept;
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &kept->callback);
  return kept;
}

void keep_result(void* kept, const PGresult* result) {
  if (PQresultStatus(result) == PGRES_TUPLES_OK)
    static_cast<KeptResult*>(kept)->result =
        PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
}

const char* read_value(const PGresult* result, int row, int column, const char* server) {
  if (PQgetisnull(result, row, column)) return nullptr;
  const char* value = PQgetvalue(result, row, column);
  if (!pg_verifymbstr(value, static_cast<int>(strlen(value)), true))
    ereport(ERROR, errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
            errmsg("server \"%s\" has sent text that is invalid in encoding \"%s\"", server,
                   GetDatabaseEncodingName()));
  return pstrdup(value);
}

Rows read_rows(const PGresult* result, const char* server) {
  Rows rows = {nullptr, PQntuples(result)};
  rows.rows = static_cast<Row*>(palloc(sizeof(Row) * static_cast<Size>(Max(rows.count, 1))));
  for (int i = 0; i < rows.count; ++i)
    for (int j = 0; j < kColumns; ++j) rows.rows[i].values[j] = read_value(result, i, j, server);
  return rows;
}

// The server, and option producer there, may contain anything.
bool is_whole_filter(const Row* row) {
  if (row->filter() == nullptr || row->values[1] == nullptr || row->name() == nullptr ||
      row->first() == nullptr)
    return false;
  const char item = row->item();
  return item == 'c' || item == 'o' || (item == 's' && row->second() != nullptr);
}

void check_rows(const Rows* rows, const char* server) {
  for (const Row* row = rows->rows; row < rows->rows + rows->count; ++row)
    if (!is_whole_filter(row))
      ereport(ERROR, errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
              errmsg("server \"%s\" gives an incomplete definition of filter \"%s\"", server,
                     row->filter() != nullptr ? row->filter() : "?"),
              errhint("Its option producer is damaged there; drop it, or import from another "
                      "server."));
}

Rows fetch_rows(Oid server, const char* schema) {
  Connection* connection = find_connection(server, GetUserId());
  KeptResult* kept = make_kept_result();
  if (!ensure_connected(connection) || (connection->level > 0 && !queue_transaction(connection)) ||
      !queue_command(connection, kQuery, {schema}) ||
      !exchange(connection, &kRows, keep_result, kept))
    ereport(ERROR, errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
            errmsg("server \"%s\" cannot be reached", connection->name));
  if (connection->error != nullptr) raise_remote(connection);
  if (kept->result == nullptr)
    ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
  const Rows rows = read_rows(kept->result, connection->name);
  check_rows(&rows, connection->name);
  return rows;
}

// ---- servers ------------------------------------------------------------------------------------

// Is the server of rows `first` to `end` at the place of `known`?
bool is_there(const ForeignServer* known, const Row* first, const Row* end) {
  for (const char* name : {"host", "port", "dbname"}) {
    const char* wanted = "";
    for (const Row* row = first; row < end; ++row)
      if (strcmp(row->first(), name) == 0) wanted = row->second();
    const char* found = find_option(known->options, name);
    if (strcmp(found != nullptr ? found : "", wanted) != 0) return false;
  }
  return true;
}

[[noreturn]] void raise_unknown_server(const Row* first, const Row* end) {
  StringInfoData options;
  initStringInfo(&options);
  for (const Row* row = first; row < end; ++row)
    if (strcmp(row->first(), "name") != 0)
      appendStringInfo(&options, "%s%s %s", options.len > 0 ? ", " : "",
                       quote_identifier(row->first()), quote_literal_cstr(row->second()));
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
          errmsg("filter \"%s\" has slices on a server that is not known here", first->filter()),
          errhint("CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter OPTIONS (%s), with a user "
                  "mapping.",
                  quote_identifier(first->name()), options.data));
  pg_unreachable();
}

bool may_use(Oid server) {
  return SF_SERVER_ACLCHECK(server, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
}

// The local name of a server: the same, or that of one at the same place, preferably one that the
// user may use. CREATE checks whether the owner may use it.
const char* find_server(Oid wrapper, const Row* first, const Row* end) {
  const ForeignServer* same = GetForeignServerByName(first->name(), true);
  if (same != nullptr && (same->fdwid != wrapper || !is_there(same, first, end))) same = nullptr;
  if (same != nullptr && may_use(same->serverid)) return same->servername;
  const ForeignServer* found = same;
  bool usable = false;
  const auto look_at = [&](const FormData_pg_foreign_server& row, HeapTuple, TupleDesc) {
    if (usable || row.srvfdw != wrapper || (found != nullptr && !may_use(row.oid))) return;
    const ForeignServer* known = GetForeignServerExtended(row.oid, FSV_MISSING_OK);
    if (known == nullptr || !is_there(known, first, end)) return;
    found = known;
    usable = may_use(row.oid);
  };
  scan_catalog<FormData_pg_foreign_server>(ForeignServerRelationId, look_at);
  if (found == nullptr) raise_unknown_server(first, end);
  return found->servername;
}

// Their local names, separated by commas, as in option servers.
const char* servers_here(Oid wrapper, const Row* row, const Row* end) {
  StringInfoData names;
  initStringInfo(&names);
  while (row < end) {
    const Row* next = row;
    while (next < end && strcmp(next->name(), row->name()) == 0) ++next;
    appendStringInfo(&names, "%s%s", names.len > 0 ? "," : "",
                     quote_identifier(find_server(wrapper, row, next)));
    row = next;
  }
  return names.data;
}

// ---- commands -----------------------------------------------------------------------------------

void append_column(StringInfo command, const Row* row) {
  Oid type;
  int32 typmod;
  SF_PARSE_TYPE_STRING(row->first(), &type, &typmod);
  appendStringInfo(
      command, "%s %s", quote_identifier(row->name()),
      format_type_extended(type, typmod, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
  if (row->second() != nullptr)
    appendStringInfo(command, " COLLATE %s",
                     generate_collation_name(get_collation_oid(
                         SF_STRING_TO_QUALIFIED_NAME_LIST(row->second()), false)));
  if (row->third() != nullptr)
    appendStringInfo(command, " OPTIONS (role %s)", quote_literal_cstr(row->third()));
}

// Options of a filter there, checked like those of CREATE, with local names of its servers.
List* read_options(const ForeignServer* server, const Row* row, const Row* servers,
                   const Row* end) {
  List* options = NIL;
  for (const Row* at = row; at < servers; ++at) {
    if (at->item() != 'o') continue;
    const char* value = at->first();
    if (strcmp(at->name(), "servers") == 0) value = servers_here(server->fdwid, servers, end);
    options = lappend(
        options,
        makeDefElem(pstrdup(at->name()), reinterpret_cast<Node*>(makeString(pstrdup(value))), -1));
  }
  Definition definition;
  RelationOptions relation_options;
  Fault fault;
  if (!read_table_options(options, &definition, &relation_options, fault))
    ereport(ERROR, errcode(fault.code),
            errmsg("definition of filter \"%s\" on server \"%s\" cannot be read here",
                   row->filter(), server->servername),
            errdetail_internal("%s", fault.text()));
  if (relation_options.producer != nullptr)
    ereport(ERROR, errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
            errmsg("server \"%s\" gives an incomplete definition of filter \"%s\"",
                   server->servername, row->filter()),
            errdetail("It says where the slices come from, not what they are slices of."));
  return options;
}

// Makes the command from the rows of one filter, at least one.
char* make_command(const ForeignServer* server, const Row* row, const Row* end) {
  const Row* servers = row;
  while (servers < end && servers->item() != 's') ++servers;
  List* options = read_options(server, row, servers, end);
  const bool several = find_option(options, "servers") != nullptr;
  StringInfoData command;
  initStringInfo(&command);
  appendStringInfo(&command, "CREATE FOREIGN TABLE %s (", quote_identifier(row->filter()));
  bool first = true;
  for (; row < servers; ++row) {
    if (row->item() != 'c') continue;
    appendStringInfoString(&command, first ? "" : ", ");
    append_column(&command, row);
    first = false;
  }
  appendStringInfo(&command, ") SERVER %s",
                   quote_identifier(several ? "streamfilter" : server->servername));
  append_options(&command, options);
  return command.data;
}

}  // namespace

List* import_foreign_schema(ImportForeignSchemaStmt* statement, Oid server_id) {
  const ForeignServer* server = server_of_oid(server_id);
  if (!server_options(server->options).is_remote)
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            errmsg("there is nothing to import from server \"%s\"", server->servername),
            errdetail("It is this server: it has none of the options host, port, dbname."));
  const Rows rows = fetch_rows(server_id, statement->remote_schema);
  const Row* const end = rows.rows + rows.count;
  List* commands = NIL;
  for (const Row* row = rows.rows; row < end;) {
    const Row* next = row;
    while (next < end && strcmp(next->filter(), row->filter()) == 0) ++next;
    if (IsImportableForeignTable(row->filter(), statement))
      commands = lappend(commands, make_command(server, row, next));
    row = next;
  }
  return commands;
}

}  // namespace streamfilter::pg
