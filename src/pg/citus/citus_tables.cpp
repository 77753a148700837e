#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_extension.h"
#include "commands/extension.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/citus/shard_triggers.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/citus.hpp"

namespace streamfilter::pg {
namespace {

// Is this node one of the cluster, as the coordinator has committed it? One that was disabled or
// removed is not while Citus activates it: its tables come before.
bool is_active_node(const char* group) {
  const char* command = psprintf(
      "SELECT 1 FROM pg_catalog.pg_dist_node WHERE groupid OPERATOR(pg_catalog.=) %s AND noderole "
      "OPERATOR(pg_catalog.=) 'primary' AND isactive",
      group);
  return query_rows(
             "SELECT 1 FROM pg_catalog.run_command_on_coordinator($1) WHERE success AND result "
             "OPERATOR(pg_catalog.=) '1'",
             TEXTOID, CStringGetTextDatum(command)) != NIL;
}

// The filter's name as the coordinator looks it up.
const char* full_name(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared) {
  char* schema;
  char* name;
  parse_name(trigger->tgargs[0], "a filter", psprintf("%s('filter')", function_name(kind)), &schema,
             &name);
  return quote_qualified_identifier(
      schema != nullptr ? schema : get_namespace_name(declared->schema), name);
}

[[noreturn]] void raise_missing(const char* name, const char* answer) {
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_TABLE),
          errmsg("filter %s does not exist on this node", name),
          answer != nullptr
              ? errdetail("The coordinator was asked for its definition, and says: %s", answer)
              : 0,
          errhint("Create it on the coordinator, and SELECT streamfilter_distribute(%s) there.",
                  quote_literal_cstr(name)));
}

bool is_key(const TriggerPlan* plan, Relation table, const char* column) {
  const AttrNumber attribute = find_exactly(table, column);
  for (int i = 0; i < plan->count; ++i)
    if (plan->inputs[i].column->role == Role::key && plan->inputs[i].source + 1 == attribute)
      return true;
  return false;
}

}  // namespace

bool has_citus() {
  return is_citus_loaded() && !creating_extension && OidIsValid(get_extension_oid("citus", true));
}

const char* worker_group() {
  List* rows = query_rows("SELECT groupid FROM pg_catalog.pg_dist_local_group", OIDOID, 0);
  const char* group = rows == NIL ? nullptr : text_at(static_cast<List*>(linitial(rows)), 0);
  return group == nullptr || strcmp(group, "0") == 0 ? nullptr : group;
}

bool is_distributed(Oid table) {
  return has_citus() && query_rows(
                            "SELECT 1 FROM pg_catalog.pg_dist_partition WHERE logicalrelid "
                            "OPERATOR(pg_catalog.=) $1",
                            OIDOID, ObjectIdGetDatum(table)) != NIL;
}

void execute_commands(const char* commands) {
  SPI_connect();
  if (SPI_execute(commands, false, 0) < 0) elog(ERROR, "could not execute: %s", commands);
  SPI_finish();
}

List* query_rows(const char* query, Oid type, Datum argument) {
  const MemoryContext caller = CurrentMemoryContext;
  List* rows = NIL;
  Oid types[] = {type};
  Datum values[] = {argument};
  SPI_connect();
  if (SPI_execute_with_args(query, 1, types, values, nullptr, false, 0) != SPI_OK_SELECT)
    elog(ERROR, "could not ask Citus: %s", query);
  for (uint64 i = 0; i < SPI_processed; ++i) {
    List* row = NIL;
    for (int j = 1; j <= SPI_tuptable->tupdesc->natts; ++j) {
      char* value = SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, j);
      const InContext context(caller);
      row = lappend(row, value == nullptr ? nullptr : pstrdup(value));
    }
    const InContext context(caller);
    rows = lappend(rows, row);
  }
  SPI_finish();
  return rows;
}

void import_filter(const Trigger* trigger, TriggerKind kind, const DeclaredTrigger* declared) {
  if (trigger->tgnargs < 1 || !has_citus()) return;
  const Oid existing = find_filter(trigger, kind, declared);
  const char* group = worker_group();
  if (group == nullptr) return;
  const char* name = full_name(trigger, kind, declared);
  // Shards are made by several connections of one transaction at once, which would wait for each
  // other.
  if (is_on_shard(trigger, declared))
    return OidIsValid(existing) ? void() : raise_missing(name, nullptr);
  if (OidIsValid(existing) && (find_option(options_of_filter(existing), "identity") == nullptr ||
                               is_used_by_tables(existing) || is_active_node(group)))
    return;
  const char* function = quote_qualified_identifier(get_namespace_name(declared->function_schema),
                                                    "streamfilter_definition");
  // The transaction that creates the trigger may have locked the filter there.
  const char* command = psprintf(
      "SELECT %s(%s::pg_catalog.regclass) FROM pg_catalog.set_config('lock_timeout', '5s', true)",
      function, quote_literal_cstr(name));
  List* rows = query_rows("SELECT success, result FROM pg_catalog.run_command_on_coordinator($1)",
                          TEXTOID, CStringGetTextDatum(command));
  if (rows == NIL) return;
  List* row = static_cast<List*>(linitial(rows));
  if (text_at(row, 0) == nullptr || text_at(row, 0)[0] != 't' || text_at(row, 1) == nullptr)
    raise_missing(name, text_at(row, 1));
  if (OidIsValid(existing)) execute_commands(psprintf("DROP FOREIGN TABLE %s", name));
  execute_commands(text_at(row, 1));
}

void check_distribution(const Trigger* trigger, TriggerKind kind, Relation table) {
  if ((!judges(kind) && !TRIGGER_FOR_TRUNCATE(trigger->tgtype)) || !has_citus()) return;
  List* rows = query_rows(
      "SELECT partmethod, repmodel, CASE WHEN partkey IS NOT NULL THEN "
      "pg_catalog.column_to_column_name(logicalrelid, partkey::pg_catalog.text) END "
      "FROM pg_catalog.pg_dist_partition WHERE logicalrelid OPERATOR(pg_catalog.=) $1",
      OIDOID, ObjectIdGetDatum(RelationGetRelid(table)));
  if (rows == NIL) return;
  List* row = static_cast<List*>(linitial(rows));
  const char* name = RelationGetRelationName(table);
  if (text_at(row, 0)[0] == 'n' && text_at(row, 1)[0] == 't')
    ereport(
        ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
        errmsg("trigger \"%s\" cannot judge rows of reference table \"%s\"", trigger->tgname, name),
        errdetail("Every node has a copy of it, and would judge by a filter of its own: the "
                  "copies would differ."),
        errhint("Distribute the table by a column of the filter's key with "
                "create_distributed_table(), or judge rows before they are inserted, with "
                "streamfilter_seen() of a filter that only the coordinator has."));
  if (!judges(kind))
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("trigger \"%s\" cannot follow TRUNCATE of distributed table \"%s\"",
                   trigger->tgname, name),
            errdetail("It would fire on one node, and the filters of the others would go on with "
                      "what they know."),
            errhint("Empty both in one statement, which reaches all nodes: TRUNCATE %s, %s.",
                    qualified_name(RelationGetRelid(table)),
                    trigger->tgnargs > 0 ? trigger->tgargs[0] : "..."));
  if (text_at(row, 0)[0] == 'h' && text_at(row, 1)[0] == 'c')
    ereport(WARNING, errmsg("copies of shards of table \"%s\" may differ", name),
            errdetail("Its replication factor is over 1, and each copy is judged by the filter of "
                      "its own node. Where that errs or has evicted a key, another may not."),
            errhint("Set citus.shard_replication_factor to 1 before create_distributed_table(), "
                    "and give each node a standby."));
  const char* column = text_at(row, 2);
  if (column == nullptr) return;
  const DeclaredTrigger declared = find_declared(trigger, table);
  const Oid filter = find_filter(trigger, kind, &declared);
  if (!OidIsValid(filter)) return;
  const TriggerPlan* plan = make_plan(trigger, kind, table, load_filter_relation(filter));
  if (is_key(plan, table, column)) return;
  ereport(WARNING,
          errmsg("table \"%s\" is not distributed by a part of the key of filter \"%s\"", name,
                 get_rel_name(filter)),
          errdetail("Its distribution column \"%s\" is none of them, so equal keys may go to "
                    "different nodes, where they are not recognized as repeats.",
                    column),
          errhint("Distribute it by a column of the key: alter_distributed_table()."));
}

// Not yet visible to the command that creates it.
void check_taken_over(Oid oid) {
  if (!is_citus_loaded() || creating_extension) return;
  Oid table_oid = InvalidOid, function = InvalidOid;
  const auto read = [&](const FormData_pg_trigger& row, HeapTuple, TupleDesc) {
    table_oid = row.tgrelid;
    function = row.tgfoid;
  };
  scan_catalog<FormData_pg_trigger>(TriggerRelationId, TriggerOidIndexId,
                                    {{Anum_pg_trigger_oid, oid}}, read, SnapshotSelf);
  const char* name = OidIsValid(function) ? get_func_name(function) : nullptr;
  if (name == nullptr || strcmp(name, "citus_truncate_trigger") != 0) return;
  Relation table = try_table_open(table_oid, AccessShareLock);
  if (table == nullptr) return;
  visit_own_triggers(table, [table](const Trigger* trigger, TriggerKind kind) {
    check_distribution(trigger, kind, table);
  });
  table_close(table, NoLock);
}

}  // namespace streamfilter::pg
