#include "pg/server/postgres.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "utils/guc.h"
}

#include <algorithm>

#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/server/citus.hpp"

namespace streamfilter::pg {
namespace {

// Sessions that Citus opens have these names (its connection_management.h); a client may call
// itself anything else, also citus_something.
bool is_opened_by_citus(const char* application) {
  constexpr const char* kNames[] = {
      "citus_internal gpid=", "citus_rebalancer gpid=", "citus_run_command gpid=", "citus_shard_"};
  return std::ranges::any_of(kNames, [application](const char* name) {
    return strncmp(application, name, strlen(name)) == 0;
  });
}

bool has_other_nodes() {
  return query_rows(
             "SELECT 1 FROM pg_catalog.pg_dist_node WHERE isactive AND noderole "
             "OPERATOR(pg_catalog.=) 'primary' AND groupid OPERATOR(pg_catalog.<>) "
             "(SELECT groupid FROM pg_catalog.pg_dist_local_group) LIMIT 1",
             OIDOID, 0) != NIL;
}

// The function (text, text) that sends a command in the coordinated transaction, as a user. Citus
// has it since 13.0, for superusers, but declares it in no script.
PGFunction sending_function() {
  return reinterpret_cast<PGFunction>(load_external_function(
      "$libdir/citus", "execute_command_on_remote_nodes_as_user", false, nullptr));
}

// The coordinator, if it holds no shards of its own: its filters see no row.
bool is_bare_coordinator() {
  return query_rows(
             "SELECT 1 FROM pg_catalog.pg_dist_local_group g WHERE groupid OPERATOR(pg_catalog.=) "
             "0 AND NOT EXISTS (SELECT FROM pg_catalog.pg_dist_node n WHERE n.groupid "
             "OPERATOR(pg_catalog.=) g.groupid AND n.shouldhaveshards)",
             OIDOID, 0) != NIL;
}

bool is_distributed_with_trigger(Oid table_oid) {
  if (!is_distributed(table_oid)) return false;
  Relation table = table_open(table_oid, AccessShareLock);
  bool found = false;
  visit_own_triggers(table, [&](const Trigger*, TriggerKind) { found = true; });
  table_close(table, NoLock);
  return found;
}

// Has every other node this value, in its own configuration?
bool nodes_have(const char* setting) {
  List* rows = query_rows(
      "SELECT success AND result OPERATOR(pg_catalog.=) pg_catalog.current_setting($1) FROM "
      "pg_catalog.run_command_on_workers('SHOW ' OPERATOR(pg_catalog.||) $1)",
      TEXTOID, CStringGetTextDatum(setting));
  ListCell* cell;
  foreach (cell, rows) {
    const char* equal = static_cast<const char*>(linitial(static_cast<List*>(lfirst(cell))));
    if (equal == nullptr || equal[0] != 't') return false;
  }
  return true;
}

// Have the nodes this value, by a SET LOCAL that travels or in their own configuration? They are
// asked once per value, or once a session.
bool reaches_nodes(const Setting& setting) {
  static bool asked[32] = {};
  if (SettingOrigin* origin = setting.origin) {
    if (!origin->travels && origin->is_default) origin->travels = nodes_have(setting.name);
    return origin->travels;
  }
  const auto number = static_cast<std::size_t>(&setting - all_settings().data());
  if (set_traveled || asked[number]) return true;
  asked[number] = true;
  return nodes_have(setting.name);
}

void require_reach(const Setting& setting, Oid table) {
  if (reaches_nodes(setting)) return;
  const bool needed = setting.reach == Reach::needed;
  const char* value = GetConfigOption(setting.name, false, false);
  const char* mode = session_mode.given && enabled ? value : "off";
  const char* other_way = psprintf(
      " Or change the mode for all sessions, here: ALTER FOREIGN TABLE ... OPTIONS (ADD "
      "mode '%s').",
      mode);
  ereport(needed ? ERROR : NOTICE,
          errcode(needed ? ERRCODE_FEATURE_NOT_SUPPORTED : ERRCODE_SUCCESSFUL_COMPLETION),
          errmsg("%s of this session does not reach the nodes that hold table \"%s\"", setting.name,
                 get_rel_name(table)),
          needed ? errdetail("Rows are judged there, by the settings of those nodes.") : 0,
          errhint("Type, in one transaction: SET LOCAL citus.propagate_set_commands = 'local'; "
                  "SET LOCAL %s = '%s'.%s",
                  setting.name, value, needed ? other_way : ""));
}

// Is one set otherwise than by default, which nodes may not have?
bool is_any_set() {
  return std::ranges::any_of(all_settings(), [](const Setting& setting) {
    return setting.reach != Reach::local && is_set(setting);
  });
}

}  // namespace

bool speaks_for_all_nodes() {
  if (!has_citus()) return false;
  const char* application = GetConfigOption("application_name", true, false);
  if (application != nullptr && is_opened_by_citus(application)) return false;
  const char* propagates = GetConfigOption("citus.enable_ddl_propagation", true, false);
  return propagates != nullptr && strcmp(propagates, "on") == 0 && has_other_nodes();
}

bool is_on_all_nodes(Oid filter) {
  return find_option(options_of_filter(filter), "identity") != nullptr;
}

bool is_on_other_nodes(Oid filter, const char* full_name) {
  if (is_on_all_nodes(filter)) return true;
  const char* command =
      psprintf("SELECT pg_catalog.to_regclass(%s)", quote_literal_cstr(full_name));
  return query_rows(
             "SELECT 1 FROM pg_catalog.run_command_on_workers($1) WHERE success AND result "
             "OPERATOR(pg_catalog.<>) ''",
             TEXTOID, CStringGetTextDatum(command)) != NIL;
}

const char* has_filter(const char* full_name) {
  return psprintf(
      "EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) "
      "pg_catalog.to_regclass(%s) AND relkind OPERATOR(pg_catalog.=) 'f')",
      quote_literal_cstr(full_name));
}

void run_on_other_nodes(const char* condition, const char* command) {
  const PGFunction function = sending_function();
  if (function == nullptr)
    ereport(
        ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
        errmsg("the statement would act on this node only"),
        errdetail("This version of Citus cannot send it to all nodes in one transaction."),
        errhint("Type: SELECT * FROM run_command_on_all_nodes(%s).", quote_literal_cstr(command)));
  const char* block = psprintf("BEGIN IF %s THEN %s; END IF; END", condition, command);
  Oid user;
  int security;
  GetUserIdAndSecContext(&user, &security);
  const char* name = GetUserNameFromId(user, false);
  SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID, security | SECURITY_LOCAL_USERID_CHANGE);
  DirectFunctionCall2(function, CStringGetTextDatum(psprintf("DO %s", quote_literal_cstr(block))),
                      CStringGetTextDatum(name));
  SetUserIdAndSecContext(user, security);
}

bool acts_on_all_nodes(Oid filter) {
  return unlikely(is_citus_loaded()) && is_on_all_nodes(filter) && speaks_for_all_nodes();
}

void call_on_all_nodes(Oid filter, const char* command) {
  List* rows = query_rows(
      "SELECT success, pg_catalog.concat(nodename, ':', nodeport, ': ', result) FROM "
      "pg_catalog.run_command_on_all_nodes($1, parallel := false) r JOIN pg_catalog.pg_dist_node n "
      "ON n.nodeid OPERATOR(pg_catalog.=) r.nodeid ORDER BY success",
      TEXTOID, CStringGetTextDatum(command));
  int failed = 0;
  ListCell* cell;
  foreach (cell, rows)
    failed += *static_cast<const char*>(linitial(static_cast<List*>(lfirst(cell)))) == 'f';
  if (failed == 0) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("filter \"%s\" was changed on %d of %d nodes of Citus", get_rel_name(filter),
                 list_length(rows) - failed, list_length(rows)),
          errdetail("%s", static_cast<const char*>(lsecond(static_cast<List*>(linitial(rows))))),
          errhint("Type the same again: it goes on with the others."));
}

void require_one_node(Oid filter, const char* what, const char* command, bool may_be_shard) {
  if (likely(!acts_on_all_nodes(filter))) return;
  const char* name = get_rel_name(filter);
  ereport(may_be_shard && !is_bare_coordinator() ? NOTICE : ERROR,
          errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("%s would act on filter \"%s\" of this node only", what, name),
          errdetail("Every node of Citus has a filter of its own for the shards that it holds."),
          errhint("Type: SELECT * FROM %s. SET citus.enable_ddl_propagation = off lets it act here "
                  "only.",
                  command));
}

void require_shard_node(Oid filter, const char* function) {
  if (unlikely(is_citus_loaded()))
    require_one_node(filter, psprintf("%s()", function),
                     psprintf("run_command_on_all_nodes($$SELECT %s(...)$$)", function), true);
}

void check_settings_reach(Oid table) {
  if (likely(!is_citus_loaded()) || !OidIsValid(table) || !is_any_set() ||
      !speaks_for_all_nodes() || !is_distributed_with_trigger(table))
    return;
  for (const Setting& setting : all_settings())
    if (setting.reach != Reach::local && is_set(setting)) require_reach(setting, table);
}

void check_settings_reach(const QueryDesc* query) {
  constexpr AclMode kChanges = ACL_INSERT | ACL_UPDATE | ACL_DELETE;
  if (likely(!is_citus_loaded()) || !is_any_set()) return;
  ListCell* cell;
  foreach (cell, SF_PERMISSIONS(query->plannedstmt)) {
    const auto* used = static_cast<const SF_RELATION_PERMISSIONS*>(lfirst(cell));
    if ((used->requiredPerms & kChanges) != 0) check_settings_reach(used->relid);
  }
}

}  // namespace streamfilter::pg
