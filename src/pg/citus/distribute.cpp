// streamfilter_distribute: a filter on every node of Citus.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "commands/tablecmds.h"
#include "tcop/tcopprot.h"
}

#include "pg/catalog/definition_commands.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/citus/citus_tables.hpp"

namespace streamfilter::pg {
namespace {

const char* name_of_filter(Oid relid) {
  const char* name = get_rel_name(relid);
  if (name == nullptr || !is_filter(relid))
    ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
            name ? errmsg("\"%s\" is not a filter", name)
                 : errmsg("relation with OID %u does not exist", relid));
  return name;
}

char* definition_of(Oid relid) {
  StringInfoData text;
  initStringInfo(&text);
  ListCell* cell;
  foreach (cell, definition_commands(relid))
    appendStringInfo(&text, "%s;\n", static_cast<char*>(lfirst(cell)));
  return text.data;
}

// Runs a command on every worker, outside of this transaction; returns the results.
List* run_command(const char* command, const char* filter) {
  List* rows = query_rows(
      "SELECT n.nodename, n.nodeport, r.success, r.result FROM "
      "pg_catalog.run_command_on_workers($1) r JOIN pg_catalog.pg_dist_node n "
      "ON n.nodename OPERATOR(pg_catalog.=) r.nodename "
      "AND n.nodeport OPERATOR(pg_catalog.=) r.nodeport",
      TEXTOID, CStringGetTextDatum(command));
  ListCell* cell;
  foreach (cell, rows) {
    List* row = static_cast<List*>(lfirst(cell));
    if (text_at(row, 2) != nullptr && text_at(row, 2)[0] == 't') continue;
    const char* said = text_at(row, 3);
    ereport(ERROR, errcode(ERRCODE_FDW_ERROR),
            errmsg("could not make filter \"%s\" on node %s:%s", filter, text_at(row, 0),
                   text_at(row, 1)),
            errdetail("The node says: %s", said != nullptr ? said : ""),
            errhint("What was made on other nodes stays; repeat the call when the node can."));
  }
  return rows;
}

// Marks the coordinator's filter as this one: a later filter of its name, or one from a dump, is
// another.
void set_identity(Oid relid, const char* identity) {
  const char* before = find_option(options_of_filter(relid), "identity");
  if (before != nullptr && strcmp(before, identity) == 0) return;
  DefElem* option = make_option("identity", identity);
  option->defaction = before == nullptr ? DEFELEM_ADD : DEFELEM_SET;
  AlterTableCmd* command = makeNode(AlterTableCmd);
  command->subtype = AT_GenericOptions;
  command->def = reinterpret_cast<Node*>(list_make1(option));
  AlterTableInternal(relid, list_make1(command), false);
  CommandCounterIncrement();
}

// The first of the commands of a definition, without option identity, which differs on each node.
struct Creation {
  const char* text = "";  // with that option
  CreateForeignTableStmt* statement = nullptr;
  Identity identity = {};
};

Creation read_creation(const char* commands) {
  Creation creation;
  List* parsed_commands = commands != nullptr ? pg_parse_query(commands) : NIL;
  if (parsed_commands == NIL) return creation;
  const auto* parsed = linitial_node(RawStmt, parsed_commands);
  creation.text = pnstrdup(commands, static_cast<Size>(parsed->stmt_len));
  if (!IsA(parsed->stmt, CreateForeignTableStmt)) return creation;
  creation.statement = castNode(CreateForeignTableStmt, parsed->stmt);
  List*& options = creation.statement->options;
  creation.identity = read_identity(find_option(options, "identity"));
  ListCell* cell;
  foreach (cell, options)
    if (is_named(lfirst_node(DefElem, cell), "identity"))
      options = foreach_delete_current(options, cell);
  return creation;
}

void check_equal(List* rows, Oid relid, const char* filter, const char* full) {
  const Creation here = read_creation(definition_of(relid));
  ListCell* cell;
  foreach (cell, rows) {
    List* row = static_cast<List*>(lfirst(cell));
    const Creation there = read_creation(text_at(row, 3));
    if (equal(there.statement, here.statement)) {
      if (there.identity.group != nullptr &&
          strcmp(there.identity.filter, identity_of_filter(relid)) == 0)
        continue;
      ereport(
          ERROR, errcode(ERRCODE_DUPLICATE_TABLE),
          errmsg("filter \"%s\" of node %s:%s is another one of that name", filter, text_at(row, 0),
                 text_at(row, 1)),
          errdetail("It was made for a filter that has been dropped elsewhere, and knows keys."),
          errhint("Type: SELECT run_command_on_workers('DROP FOREIGN TABLE %s'), and repeat the "
                  "call.",
                  full));
    }
    ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
            errmsg("filter \"%s\" is defined otherwise on node %s:%s", filter, text_at(row, 0),
                   text_at(row, 1)),
            errdetail("There: %s;", there.text),
            errhint("Alter or drop it there, with run_command_on_workers()."));
  }
}

void require_coordinator() {
  if (!has_citus())
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("streamfilter_distribute() needs extension citus"),
            errhint("On a single server a filter needs no distribution."));
  if (worker_group() == nullptr) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filters are distributed from the coordinator"));
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_definition(filter regclass): the commands that make it, with owner and rights.
SF_FUNCTION(streamfilter_definition) {
  const Oid relid = PG_GETARG_OID(0);
  name_of_filter(relid);
  PG_RETURN_TEXT_P(cstring_to_text(definition_of(relid)));
}

// streamfilter_distribute(filter regclass): makes it on all workers of Citus; returns the number
// that now have it.
SF_FUNCTION(streamfilter_distribute) {
  const Oid relid = PG_GETARG_OID(0);
  require_own_filter(relid);
  const char* name = name_of_filter(relid);
  require_coordinator();
  const char* full = qualified_name(relid);
  set_identity(relid, identity_of_filter(relid));
  ListCell* cell;
  List* rows = NIL;
  foreach (cell, definition_commands(relid))
    rows = run_command(static_cast<char*>(lfirst(cell)), name);
  const Oid schema = get_func_namespace(fcinfo->flinfo->fn_oid);
  run_command(identity_command(full, identity_of_filter(relid)), name);
  rows = run_command(
      psprintf("SELECT %s(%s::pg_catalog.regclass)",
               quote_qualified_identifier(get_namespace_name(schema), "streamfilter_definition"),
               quote_literal_cstr(full)),
      name);
  check_equal(rows, relid, name, full);
  PG_RETURN_INT32(list_length(rows));
}
