// Nodes get statements rewritten with full names, because a client's names depend on its
// search_path. They run as the current user, so that rights are checked there, too.
#include "pg/server/postgres.hpp"

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/citus/citus_ddl.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/server/citus.hpp"

namespace streamfilter::pg {
namespace {

// A command for one filter.
struct NodeCommand {
  const char* condition;  // for a node to run it
  const char* text;
  Oid filter = InvalidOid;     // of all nodes, with a life
  const char* life = nullptr;  // that begins with it
};

// Is its state on this server? Filters on other servers reach those by themselves, and parts of
// them belong to their producers.
bool is_held_here(Oid relid) {
  List* options = options_of_filter(relid);
  if (find_option(options, "servers") != nullptr || find_option(options, "producer") != nullptr)
    return false;
  const ForeignServer* server = GetForeignServerExtended(server_of(relid), FSV_MISSING_OK);
  return server != nullptr && !server_options(server->options).is_remote;
}

Oid find_own_filter(const RangeVar* name) {
  const Oid relid = name != nullptr ? RangeVarGetRelid(name, NoLock, true) : InvalidOid;
  return OidIsValid(relid) && is_filter(relid) && is_held_here(relid) ? relid : InvalidOid;
}

NodeCommand* add(List** commands, Oid relid, const char* text) {
  auto* command = allocate<NodeCommand>();
  *command = {has_filter(qualified_name(relid)), text};
  *commands = lappend(*commands, command);
  return command;
}

// Of a filter on all nodes: only where it is of the same life. `begins`: another one begins with
// it.
void add_in_life(List** commands, Oid relid, const char* text, bool begins = false) {
  NodeCommand* command = add(commands, relid, text);
  const char* life = find_option(options_of_filter(relid), "identity");
  if (life == nullptr) return;
  command->filter = relid;
  if (begins) command->life = draw_life(relid);
  command->text = psprintf("%s; %s", node_call(qualified_name(relid), life, command->life), text);
}

// Refuses a statement that is not rewritten: each node needs it in a transaction of its own.
void refuse(Oid relid, const char* what, const char* command) {
  if (!acts_on_all_nodes(relid)) return;
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      errmsg("%s would act on filter \"%s\" of this node only", what, get_rel_name(relid)),
      errdetail("The other nodes of Citus have a filter of that name, each for its shards."),
      errhint("Type: SELECT * FROM run_command_on_all_nodes(%s).", quote_literal_cstr(command)));
}

// ---- TRUNCATE and DROP

void add_truncate(List** commands, const TruncateStmt* statement) {
  for (auto* name : each<RangeVar>(statement->relations))
    if (const Oid relid = find_own_filter(name); OidIsValid(relid))
      add_in_life(commands, relid, psprintf("TRUNCATE %s", qualified_name(relid)), true);
}

// Drops all filters in one command, because they may depend on each other.
void add_drop(List** commands, const DropStmt* statement) {
  if (statement->removeType != OBJECT_FOREIGN_TABLE) return;
  Oid first = InvalidOid;
  TextBuffer text;
  for (auto* part : each<List>(statement->objects))
    if (const Oid relid = find_own_filter(makeRangeVarFromNameList(part)); OidIsValid(relid)) {
      if (!OidIsValid(first)) first = relid;
      appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "", qualified_name(relid));
    }
  if (!OidIsValid(first)) return;
  NodeCommand* drop = add(commands, first,
                          psprintf("DROP FOREIGN TABLE IF EXISTS %s%s", text.data,
                                   statement->behavior == DROP_CASCADE ? " CASCADE" : ""));
  if (is_on_all_nodes(first)) drop->filter = first;
}

// The server that CREATE EXTENSION made is the same on all nodes, also once it leads elsewhere.
bool is_of_all_nodes(const ForeignServer* server) {
  return OidIsValid(getExtensionOfObject(ForeignServerRelationId, server->serverid)) ||
         !server_options(server->options).is_remote;
}

// If the server is the same on all nodes.
void add_for_server(List** commands, const char* name, const char* text) {
  const ForeignServer* server = GetForeignServerByName(name, true);
  if (server == nullptr || !is_wrapper_of_filters(server->fdwid) || !is_of_all_nodes(server))
    return;
  auto* command = allocate<NodeCommand>();
  *command = {psprintf("EXISTS (SELECT FROM pg_catalog.pg_foreign_server WHERE srvname "
                       "OPERATOR(pg_catalog.=) %s)",
                       quote_literal_cstr(name)),
              text};
  *commands = lappend(*commands, command);
}

void alter_server(List** commands, const char* name, const char* change) {
  add_for_server(commands, name, psprintf("ALTER SERVER %s %s", quote_identifier(name), change));
}

// ---- RENAME, SET SCHEMA

// Of the filter or a column; its triggers and constraints are those of one node.
void add_rename(List** commands, const RenameStmt* statement) {
  if (statement->renameType == OBJECT_FOREIGN_SERVER)
    return alter_server(commands, strVal(statement->object),
                        psprintf("RENAME TO %s", quote_identifier(statement->newname)));
  const Oid relid = find_own_filter(statement->relation);
  if (!OidIsValid(relid)) return;
  if (statement->renameType != OBJECT_FOREIGN_TABLE && statement->renameType != OBJECT_TABLE &&
      statement->renameType != OBJECT_COLUMN)
    return refuse(relid, "ALTER", "ALTER ...");
  const char* column = statement->renameType == OBJECT_COLUMN
                           ? psprintf("COLUMN %s ", quote_identifier(statement->subname))
                           : "";
  add_in_life(commands, relid,
              psprintf("ALTER FOREIGN TABLE %s RENAME %sTO %s", qualified_name(relid), column,
                       quote_identifier(statement->newname)));
}

void add_schema(List** commands, const AlterObjectSchemaStmt* statement) {
  const Oid relid = find_own_filter(statement->relation);
  if (OidIsValid(relid))
    add_in_life(commands, relid,
                psprintf("ALTER FOREIGN TABLE %s SET SCHEMA %s", qualified_name(relid),
                         quote_identifier(statement->newschema)));
}

// ---- ALTER

const char* changes_of_options(List* options) {
  TextBuffer text;
  for (auto* option : each<DefElem>(options)) {
    const bool is_drop = option->defaction == DEFELEM_DROP;
    appendStringInfo(&text, "%s%s %s%s", text.len > 0 ? ", " : "",
                     is_drop                            ? "DROP"
                     : option->defaction == DEFELEM_SET ? "SET"
                                                        : "ADD",
                     quote_identifier(option->defname), is_drop ? "" : " ");
    if (!is_drop) appendStringInfoString(&text, quote_literal_cstr(value_of(option)));
  }
  return text.data;
}

const char* role_text(const RoleSpec* role) {
  return role->roletype == ROLESPEC_PUBLIC ? "PUBLIC" : quote_identifier(get_rolespec_name(role));
}

// nullptr: it cannot be sent.
const char* change_of(const AlterTableCmd* command) {
  if (command->subtype == AT_ChangeOwner)
    return psprintf("OWNER TO %s", role_text(command->newowner));
  if (command->subtype != AT_GenericOptions) return nullptr;
  return psprintf("OPTIONS (%s)", changes_of_options(castNode(List, command->def)));
}

void add_alter(List** commands, const AlterTableStmt* statement) {
  const Oid relid = find_own_filter(statement->relation);
  if (!OidIsValid(relid)) return;
  const char* changes = "";
  for (const auto* command : each<AlterTableCmd>(statement->cmds)) {
    if (const char* change = change_of(command))
      changes = psprintf("%s%s%s", changes, changes[0] != '\0' ? ", " : "", change);
    else
      refuse(relid, "ALTER", psprintf("ALTER FOREIGN TABLE %s ...", qualified_name(relid)));
  }
  if (changes[0] != '\0')
    add_in_life(commands, relid,
                psprintf("ALTER FOREIGN TABLE %s %s", qualified_name(relid), changes), true);
}

void add_server_options(List** commands, const AlterForeignServerStmt* statement) {
  if (statement->options != NIL)
    alter_server(commands, statement->servername,
                 psprintf("OPTIONS (%s)", changes_of_options(statement->options)));
}

void add_server_owner(List** commands, const AlterOwnerStmt* statement) {
  if (statement->objectType == OBJECT_FOREIGN_SERVER)
    alter_server(commands, strVal(statement->object),
                 psprintf("OWNER TO %s", role_text(statement->newowner)));
}

// On the filter, or on a column of it.
void add_comment(List** commands, const CommentStmt* statement) {
  const bool column = statement->objtype == OBJECT_COLUMN;
  if (statement->objtype != OBJECT_FOREIGN_TABLE && !column) return;
  List* name = list_copy(castNode(List, statement->object));
  const char* its = column ? psprintf(".%s", quote_identifier(strVal(llast(name)))) : "";
  if (column) name = list_delete_last(name);
  const Oid relid = name != NIL ? find_own_filter(makeRangeVarFromNameList(name)) : InvalidOid;
  if (!OidIsValid(relid)) return;
  add_in_life(
      commands, relid,
      psprintf("COMMENT ON %s %s%s IS %s", column ? "COLUMN" : "FOREIGN TABLE",
               qualified_name(relid), its,
               statement->comment != nullptr ? quote_literal_cstr(statement->comment) : "NULL"));
}

// ---- GRANT

const char* rights_of(const GrantStmt* statement) {
  if (statement->privileges == NIL) return "ALL";
  TextBuffer text;
  ListCell* column;
  for (const auto* right : each<AccessPriv>(statement->privileges)) {
    appendStringInfo(&text, "%s%s", text.len > 0 ? ", " : "",
                     right->priv_name != nullptr ? right->priv_name : "ALL");
    foreach (column, right->cols)
      appendStringInfo(&text, "%s%s", foreach_current_index(column) == 0 ? " (" : ", ",
                       quote_identifier(strVal(lfirst(column))));
    if (right->cols != NIL) appendStringInfoChar(&text, ')');
  }
  return text.data;
}

const char* grant_on(const GrantStmt* statement, const char* object) {
  TextBuffer text;
  appendStringInfo(&text, "%s%s%s ON %s %s ", statement->is_grant ? "GRANT " : "REVOKE ",
                   !statement->is_grant && statement->grant_option ? "GRANT OPTION FOR " : "",
                   rights_of(statement), object, statement->is_grant ? "TO" : "FROM");
  ListCell* cell;
  foreach (cell, statement->grantees)
    appendStringInfo(&text, "%s%s", foreach_current_index(cell) > 0 ? ", " : "",
                     role_text(lfirst_node(RoleSpec, cell)));
  if (statement->is_grant && statement->grant_option)
    appendStringInfoString(&text, " WITH GRANT OPTION");
  if (statement->grantor != nullptr)
    appendStringInfo(&text, " GRANTED BY %s", role_text(statement->grantor));
  if (!statement->is_grant && statement->behavior == DROP_CASCADE)
    appendStringInfoString(&text, " CASCADE");
  return text.data;
}

void add_grant_on(List** commands, const GrantStmt* statement, Oid relid) {
  add_in_life(commands, relid, grant_on(statement, psprintf("TABLE %s", qualified_name(relid))));
}

void add_grant_on_servers(List** commands, const GrantStmt* statement) {
  for (auto* object : each<Node>(statement->objects))
    add_for_server(
        commands, strVal(object),
        grant_on(statement, psprintf("FOREIGN SERVER %s", quote_identifier(strVal(object)))));
}

bool is_in_schemas(Oid relid, List* schemas) {
  const char* schema = get_namespace_name(get_rel_namespace(relid));
  for (auto* name : each<Node>(schemas))
    if (schema != nullptr && strcmp(strVal(name), schema) == 0) return true;
  return false;
}

void add_grant(List** commands, const GrantStmt* statement) {
  if (statement->objtype == OBJECT_FOREIGN_SERVER) add_grant_on_servers(commands, statement);
  if (statement->objtype != OBJECT_TABLE) return;
  if (statement->targtype == ACL_TARGET_ALL_IN_SCHEMA) {
    for (const Oid relid : each_oid(list_filters()))
      if (is_in_schemas(relid, statement->objects) && is_held_here(relid))
        add_grant_on(commands, statement, relid);
  } else if (statement->targtype == ACL_TARGET_OBJECT) {
    for (auto* name : each<RangeVar>(statement->objects))
      if (const Oid relid = find_own_filter(name); OidIsValid(relid))
        add_grant_on(commands, statement, relid);
  }
}

// Looks names up before the statement runs: afterwards they mean something else or nothing.
List* commands_of(Node* statement) {
  List* commands = NIL;
  switch (nodeTag(statement)) {
    case T_TruncateStmt: add_truncate(&commands, castNode(TruncateStmt, statement)); break;
    case T_DropStmt: add_drop(&commands, castNode(DropStmt, statement)); break;
    case T_RenameStmt: add_rename(&commands, castNode(RenameStmt, statement)); break;
    case T_AlterObjectSchemaStmt:
      add_schema(&commands, castNode(AlterObjectSchemaStmt, statement));
      break;
    case T_AlterTableStmt: add_alter(&commands, castNode(AlterTableStmt, statement)); break;
    case T_AlterForeignServerStmt:
      add_server_options(&commands, castNode(AlterForeignServerStmt, statement));
      break;
    case T_AlterOwnerStmt: add_server_owner(&commands, castNode(AlterOwnerStmt, statement)); break;
    case T_CommentStmt: add_comment(&commands, castNode(CommentStmt, statement)); break;
    case T_GrantStmt: add_grant(&commands, castNode(GrantStmt, statement)); break;
    case T_CreateTrigStmt:
      if (const Oid relid = find_own_filter(castNode(CreateTrigStmt, statement)->relation);
          OidIsValid(relid))
        refuse(relid, "CREATE TRIGGER", "CREATE TRIGGER ...");
      break;
    default: break;
  }
  return commands;
}

// Does the statement lock a filter so that no writer may have it?
bool locks_out_writers(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_TruncateStmt:
    case T_RenameStmt:
    case T_AlterObjectSchemaStmt:
    case T_AlterTableStmt:
    case T_DropStmt: return true;
    default: return false;
  }
}

// Does Citus send this SET to the nodes?
bool is_sent_by_citus(const VariableSetStmt* statement) {
  const char* sent = GetConfigOption("citus.propagate_set_commands", true, false);
  return statement->is_local && statement->name != nullptr && sent != nullptr &&
         strcmp(sent, "local") == 0 && IsTransactionBlock() &&
         find_named(all_settings(), statement->name) != nullptr;
}

void run_set(UtilityCall* call) {
  set_travels = is_sent_by_citus(castNode(VariableSetStmt, statement_of(call)));
  set_traveled = set_traveled || set_travels;
  PG_TRY();
  { call->go_on(); }
  PG_FINALLY();
  { set_travels = false; }
  PG_END_TRY();
}

// A writer has locked its table before it is at the gate.
void lock_distributed(const TruncateStmt* statement) {
  for (auto* name : each<RangeVar>(statement->relations))
    if (const Oid relid = RangeVarGetRelid(name, NoLock, true);
        OidIsValid(relid) && is_distributed(relid))
      execute_commands(psprintf("LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", qualified_name(relid)));
}

}  // namespace

void send_to_nodes(UtilityCall* call) {
  if (likely(!is_citus_loaded())) return call->go_on();
  Node* statement = statement_of(call);
  if (IsA(statement, VariableSetStmt)) return run_set(call);
  if (IsA(statement, CopyStmt)) {
    const auto* copy = castNode(CopyStmt, statement);
    const Oid table = copy->is_from ? RangeVarGetRelid(copy->relation, NoLock, true) : InvalidOid;
    prepare_to_write(table);
    return call->go_on();
  }
  List* commands = commands_of(statement);
  if (commands != NIL && !speaks_for_all_nodes()) commands = NIL;
  call->go_on();
  for (const auto* command : each<NodeCommand>(commands)) {
    if (command->life != nullptr) write_life(command->filter, command->life);
    run_on_other_nodes(command->condition, command->text);
  }
}

void close_gates(UtilityCall* call) {
  if (likely(!is_citus_loaded())) return call->go_on();
  Node* statement = statement_of(call);
  List* commands = locks_out_writers(statement) ? commands_of(statement) : NIL;
  if (commands == NIL || !speaks_for_all_nodes()) return call->go_on();
  if (IsA(statement, TruncateStmt)) lock_distributed(castNode(TruncateStmt, statement));
  for (const auto* command : each<NodeCommand>(commands))
    if (OidIsValid(command->filter) && may_empty(command->filter)) {
      lock_gate(command->filter, AccessExclusiveLock);
      run_on_other_nodes(command->condition, close_gate_call(qualified_name(command->filter)));
    }
  call->go_on();
}

void call_on_other_nodes(Oid filter, Oid function) {
  if (likely(!is_citus_loaded()) || (OidIsValid(filter) && !is_on_all_nodes(filter)) ||
      !speaks_for_all_nodes())
    return;
  const char* called = quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
                                                  get_func_name(function));
  if (!OidIsValid(filter))
    return run_on_other_nodes(psprintf("pg_catalog.to_regprocedure(%s) IS NOT NULL",
                                       quote_literal_cstr(psprintf("%s()", called))),
                              psprintf("PERFORM %s()", called));
  const char* name = qualified_name(filter);
  run_on_other_nodes(has_filter(name), psprintf("PERFORM %s(%s::pg_catalog.regclass)", called,
                                                quote_literal_cstr(name)));
}

}  // namespace streamfilter::pg
