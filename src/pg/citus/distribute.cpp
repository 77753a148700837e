// streamfilter_distribute: a filter on every node of Citus.
#include "pg/server/postgres.hpp"

extern "C" {
#include "tcop/tcopprot.h"
}

#include "pg/binding/trigger_binding.hpp"
#include "pg/catalog/definition_commands.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/server/rows.hpp"

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
  TextBuffer text;
  for (auto* command : each<char>(definition_commands(relid)))
    appendStringInfo(&text, "%s;\n", command);
  return text.data;
}

// Runs a command on every worker, outside of this transaction; returns the results.
List* run_command(const char* command, const char* filter,
                  const char* hint =
                      "What was made on other nodes stays; repeat the call when the node can. The "
                      "filter's owner needs LOGIN and USAGE on server streamfilter there.") {
  List* rows = query_rows(
      "SELECT n.nodename, n.nodeport, r.success, r.result FROM "
      "pg_catalog.run_command_on_workers($1) r JOIN pg_catalog.pg_dist_node n "
      "ON n.nodename OPERATOR(pg_catalog.=) r.nodename "
      "AND n.nodeport OPERATOR(pg_catalog.=) r.nodeport",
      TEXTOID, CStringGetTextDatum(command));
  for (auto* row : each<List>(rows)) {
    if (text_at(row, 2) != nullptr && text_at(row, 2)[0] == 't') continue;
    const char* said = text_at(row, 3);
    ereport(ERROR, errcode(ERRCODE_FDW_ERROR),
            errmsg("could not make filter \"%s\" on node %s:%s", filter, text_at(row, 0),
                   text_at(row, 1)),
            errdetail("The node says: %s", said != nullptr ? said : ""), errhint("%s", hint));
  }
  return rows;
}

// The first of the commands of a definition, without option identity: its life stands apart.
struct Creation {
  const char* text = "";  // with that option
  CreateForeignTableStmt* statement = nullptr;
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
  ListCell* cell;
  foreach (cell, options)
    if (is_named(lfirst_node(DefElem, cell), "identity"))
      options = foreach_delete_current(options, cell);
  return creation;
}

const char* other_life_hint(const char* full_name) {
  return psprintf(
      "Drop the triggers that use it, type SELECT streamfilter_distribute(%s) on the coordinator, "
      "and create them again: they learn the rows that each node has. Or restore all nodes to one "
      "citus_create_restore_point().",
      quote_literal_cstr(full_name));
}

void require_life(Oid filter, const char* now, const char* wanted) {
  if (now != nullptr && strcmp(now, wanted) == 0) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter %s of this node is of another life", qualified_name(filter)),
          errdetail("This node or the one that sends the statement was restored from a backup of "
                    "before a TRUNCATE or ALTER of it."),
          errhint("%s", other_life_hint(qualified_name(filter))));
}

void check_equal(List* rows, Oid relid, const char* filter) {
  const Creation here = read_creation(definition_of(relid));
  for (auto* row : each<List>(rows)) {
    const Creation there = read_creation(text_at(row, 3));
    if (equal(there.statement, here.statement)) continue;
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
  const char* life = own_life(relid);
  if (life == nullptr) write_life(relid, life = draw_life(relid));
  const auto call_nodes = [&](const char* former) {
    const char* block = psprintf("BEGIN IF %s THEN %s; END IF; END", has_filter(full),
                                 node_call(full, former, life));
    run_command(psprintf("DO %s", quote_literal_cstr(block)), name, other_life_hint(full));
  };
  call_nodes(nullptr);
  for (auto* command : each<char>(definition_commands(relid))) run_command(command, name);
  const Oid schema = get_func_namespace(fcinfo->flinfo->fn_oid);
  List* rows = run_command(
      psprintf("SELECT %s(%s::pg_catalog.regclass)",
               quote_qualified_identifier(get_namespace_name(schema), "streamfilter_definition"),
               quote_literal_cstr(full)),
      name);
  check_equal(rows, relid, name);
  call_nodes(life);
  PG_RETURN_INT32(list_length(rows));
}

// streamfilter_for_nodes(filter regclass, former text, life text): see node_call().
SF_FUNCTION(streamfilter_for_nodes) {
  require_arguments(fcinfo, {0});
  const Oid relid = PG_GETARG_OID(0);
  const char* name = name_of_filter(relid);
  const char* former = PG_ARGISNULL(1) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(1));
  const char* life = PG_ARGISNULL(2) ? nullptr : text_to_cstring(PG_GETARG_TEXT_PP(2));
  const char* now = find_option(options_of_filter(relid), "identity");
  const bool takes = former != nullptr && life != nullptr && strcmp(former, life) == 0;
  const bool drops =
      former == nullptr && life != nullptr && now != nullptr && strcmp(now, life) != 0;
  if (former != nullptr && !(takes && now == nullptr)) require_life(relid, now, former);
  if (drops && is_used_by_tables(relid)) require_life(relid, now, life);
  if (former != nullptr && life == nullptr) PG_RETURN_VOID();
  if (!may_empty(relid)) aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_FOREIGN_TABLE, name);
  if (life == nullptr)
    lock_gate(relid, AccessExclusiveLock);
  else if (drops)
    execute_commands(psprintf("DROP FOREIGN TABLE %s", qualified_name(relid)));
  else if (former != nullptr)
    write_life(relid, life);
  PG_RETURN_VOID();
}

}  // namespace streamfilter::pg
