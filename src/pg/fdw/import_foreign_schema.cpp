// A producer needs to know only one of the servers of a filter, which keeps its definition
// (pg/catalog/producer.hpp). No part of it enters a command unquoted or unparsed.
#include "pg/server/postgres.hpp"

extern "C" {
#include "parser/parse_type.h"
#include "utils/regproc.h"
#include "utils/ruleutils.h"
}

#include "pg/catalog/definition_commands.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/producer.hpp"
#include "pg/fdw/import_foreign_schema.hpp"
#include "pg/remote/connect.hpp"
#include "pg/remote/remote_transaction.hpp"

namespace streamfilter::pg {
namespace {

const char* kQuery =
    "SELECT c.relname, o.option_value FROM pg_catalog.pg_foreign_table t "
    "JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.ftrelid "
    "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace "
    "CROSS JOIN LATERAL pg_catalog.pg_options_to_table(t.ftoptions) o "
    "WHERE n.nspname OPERATOR(pg_catalog.=) $1 AND o.option_name OPERATOR(pg_catalog.=) 'producer' "
    "ORDER BY c.relname";

constexpr Size kMaxText = 1024 * 1024;
constexpr ColumnShape kRowColumns[] = {{NAMEOID, false, false, NAMEDATALEN},
                                       {TEXTOID, false, false, kMaxText}};
constexpr uint64 kMaxRowBytes = 64 * 1024 * 1024;  // of some 20,000 filters
constexpr RowShape kRows = {kRowColumns, lengthof(kRowColumns), 0, 1'000'000, kMaxRowBytes};

PGresult* rows = nullptr;  // libpq's memory: after an error it stays until the next import

void keep_rows(void*, const PGresult* result) {
  if (PQresultStatus(result) == PGRES_TUPLES_OK)
    rows = PQcopyResult(result, PG_COPYRES_ATTRS | PG_COPYRES_TUPLES);
}

void forget_rows() {
  PQclear(rows);
  rows = nullptr;
}

const char* read_value(int row, int column, const char* server) {
  const char* value = PQgetvalue(rows, row, column);
  if (!pg_verifymbstr(value, static_cast<int>(strlen(value)), true))
    ereport(ERROR, errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
            errmsg("server \"%s\" has sent text that is invalid in encoding \"%s\"", server,
                   GetDatabaseEncodingName()));
  return pstrdup(value);
}

void fetch_rows(Oid server, const char* schema) {
  Connection* connection = find_connection(server, GetUserId());
  forget_rows();
  if (!ensure_connected(connection) || (connection->level > 0 && !queue_transaction(connection)) ||
      !queue_command(connection, kQuery, {schema}) || !exchange(connection, &kRows, keep_rows))
    ereport(ERROR, errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
            errmsg("server \"%s\" cannot be reached", connection->name));
  if (connection->error != nullptr) raise_remote(connection);
  if (rows == nullptr) ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
}

[[noreturn]] void raise_incomplete(const ForeignServer* server, const char* filter,
                                   const char* detail) {
  ereport(ERROR, errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
          errmsg("server \"%s\" gives an incomplete definition of filter \"%s\"",
                 server->servername, filter),
          detail != nullptr ? errdetail_internal("%s", detail) : 0,
          errhint("Its option producer is damaged there; drop it, or import from another "
                  "server."));
}

// ---- servers ------------------------------------------------------------------------------------

// Is the server at this place?
bool is_there(const ForeignServer* known, List* place) {
  for (const char* name : {"host", "port", "dbname"}) {
    const char* wanted = find_option(place, name);
    const char* found = find_option(known->options, name);
    if (strcmp(found != nullptr ? found : "", wanted != nullptr ? wanted : "") != 0) return false;
  }
  return true;
}

[[noreturn]] void raise_unknown_server(const char* filter, List* place) {
  List* options = NIL;
  for (auto* option : each<DefElem>(place))
    if (!is_named(option, "name")) options = lappend(options, option);
  TextBuffer text;
  append_options(&text, options);
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
          errmsg("filter \"%s\" has slices on a server that is not known here", filter),
          errhint("CREATE SERVER %s FOREIGN DATA WRAPPER streamfilter%s, with a user "
                  "mapping.",
                  quote_identifier(find_option(place, "name")), text.data));
}

bool may_use(Oid server) {
  return SF_SERVER_ACLCHECK(server, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
}

// The local name of a server: the same, or that of one at the same place, preferably one that the
// user may use. CREATE checks whether the owner may use it.
const char* find_server(Oid wrapper, const char* filter, List* place) {
  const ForeignServer* same = GetForeignServerByName(find_option(place, "name"), true);
  if (same != nullptr && (same->fdwid != wrapper || !is_there(same, place))) same = nullptr;
  if (same != nullptr && may_use(same->serverid)) return same->servername;
  const ForeignServer* found = same;
  bool usable = false;
  const auto look_at = [&](const FormData_pg_foreign_server& row, HeapTuple, TupleDesc) {
    if (usable || row.srvfdw != wrapper || (found != nullptr && !may_use(row.oid))) return;
    const ForeignServer* known = GetForeignServerExtended(row.oid, FSV_MISSING_OK);
    if (known == nullptr || !is_there(known, place)) return;
    found = known;
    usable = may_use(row.oid);
  };
  scan_catalog<FormData_pg_foreign_server>(ForeignServerRelationId, look_at);
  if (found == nullptr) raise_unknown_server(filter, place);
  return found->servername;
}

// Their local names, separated by commas, as in option servers.
const char* servers_here(Oid wrapper, const char* filter, const Producer* producer) {
  TextBuffer names;
  for (auto* part : each<List>(producer->servers))
    appendStringInfo(&names, "%s%s", names.len > 0 ? "," : "",
                     quote_identifier(find_server(wrapper, filter, part)));
  return names.data;
}

// ---- commands -----------------------------------------------------------------------------------

void append_column(StringInfo command, List* column) {
  Oid type;
  int32 typmod;
  SF_PARSE_TYPE_STRING(find_option(column, "type"), &type, &typmod);
  appendStringInfo(
      command, "%s %s", quote_identifier(find_option(column, "name")),
      format_type_extended(type, typmod, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
  if (const char* collation = find_option(column, "collation"))
    appendStringInfo(command, " COLLATE %s",
                     generate_collation_name(
                         get_collation_oid(SF_STRING_TO_QUALIFIED_NAME_LIST(collation), false)));
  List* options = NIL;
  for (const char* name : {"role", "unit"})
    if (const char* value = find_option(column, name))
      options = lappend(options, make_option(name, value));
  append_options(command, options);
}

// Options of a filter there, checked like those of CREATE, with local names of its servers.
List* read_options(const ForeignServer* server, const char* filter, const Producer* producer) {
  List* options = NIL;
  for (auto* option : each<DefElem>(producer->options)) {
    options =
        lappend(options, is_named(option, "servers")
                             ? make_option("servers", servers_here(server->fdwid, filter, producer))
                             : option);
  }
  Definition definition;
  RelationOptions relation_options;
  Fault fault;
  if (!read_table_options(options, &definition, &relation_options, fault))
    ereport(ERROR, errcode(fault.code),
            errmsg("definition of filter \"%s\" on server \"%s\" cannot be read here", filter,
                   server->servername),
            errdetail_internal("%s", fault.text()));
  if (relation_options.producer != nullptr)
    raise_incomplete(server, filter,
                     _("It says where the slices come from, not what they are slices of."));
  return options;
}

char* make_command(const ForeignServer* server, const char* filter, const Producer* producer) {
  List* options = read_options(server, filter, producer);
  const bool several = find_option(options, "servers") != nullptr;
  TextBuffer command;
  appendStringInfo(&command, "CREATE FOREIGN TABLE %s (", quote_identifier(filter));
  ListCell* cell;
  foreach (cell, producer->columns) {
    if (foreach_current_index(cell) > 0) appendStringInfoString(&command, ", ");
    append_column(&command, static_cast<List*>(lfirst(cell)));
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
  fetch_rows(server_id, statement->remote_schema);
  List* commands = NIL;
  for (int i = 0; i < PQntuples(rows); ++i) {
    const char* filter = read_value(i, 0, server->servername);
    if (!IsImportableForeignTable(filter, statement)) continue;
    const Producer* producer = read_producer(read_value(i, 1, server->servername));
    if (producer->damaged) raise_incomplete(server, filter, nullptr);
    commands = lappend(commands, make_command(server, filter, producer));
  }
  forget_rows();
  return commands;
}

}  // namespace streamfilter::pg
