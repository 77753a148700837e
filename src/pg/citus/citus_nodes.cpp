#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_authid.h"
}

#include <algorithm>

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/citus/citus_tables.hpp"
#include "pg/server/citus.hpp"
#include "pg/storage/saved_definition.hpp"

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
      "$libdir/citus", "execute_command_on_remote_nodes_as_user", true, nullptr));
}

// The coordinator, if it holds no shards of its own: its filters see no row.
bool is_bare_coordinator() {
  return query_rows(
             "SELECT 1 FROM pg_catalog.pg_dist_local_group g WHERE groupid OPERATOR(pg_catalog.=) "
             "0 AND NOT EXISTS (SELECT FROM pg_catalog.pg_dist_node n WHERE n.groupid "
             "OPERATOR(pg_catalog.=) g.groupid AND n.shouldhaveshards)",
             OIDOID, 0) != NIL;
}

// Has every other node this value, in its own configuration?
bool nodes_have(const char* setting) {
  List* rows = query_rows(
      "SELECT success AND result OPERATOR(pg_catalog.=) pg_catalog.current_setting($1) FROM "
      "pg_catalog.run_command_on_workers('SHOW ' OPERATOR(pg_catalog.||) $1)",
      TEXTOID, CStringGetTextDatum(setting));
  for (const auto* part : each<List>(rows)) {
    const char* equal = static_cast<const char*>(linitial(part));
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

const char* draw_life(Oid filter) {
  return psprintf(INT64_FORMAT "/%u", begin_life() & PG_INT64_MAX, filter);
}

const char* own_life(Oid filter) {
  const char* life = find_option(options_of_filter(filter), "identity");
  const char* made_for = life != nullptr ? strchr(life, '/') : nullptr;
  return made_for != nullptr && strcmp(made_for + 1, psprintf("%u", filter)) == 0 ? life : nullptr;
}

void write_life(Oid filter, const char* life) {
  const char* before = find_option(options_of_filter(filter), "identity");
  if (before != nullptr && strcmp(before, life) == 0) return;
  DefElem* option = make_option("identity", life);
  option->defaction = before == nullptr ? DEFELEM_ADD : DEFELEM_SET;
  AlterTableCmd* command = makeNode(AlterTableCmd);
  command->subtype = AT_GenericOptions;
  command->def = reinterpret_cast<Node*>(list_make1(option));
  AlterTableInternal(filter, list_make1(command), false);
  CommandCounterIncrement();
}

const char* node_call(const char* full_name, const char* former, const char* life) {
  const auto quoted = [](const char* text) {
    return text != nullptr ? quote_literal_cstr(text) : "NULL";
  };
  return psprintf(
      "EXECUTE (SELECT pg_catalog.format('SELECT %%s.streamfilter_for_nodes(%%L, %%L, %%L)', "
      "extnamespace::pg_catalog.regnamespace, %s, %s, %s) FROM pg_catalog.pg_extension WHERE "
      "extname OPERATOR(pg_catalog.=) 'streamfilter')",
      quoted(full_name), quoted(former), quoted(life));
}

bool may_empty(Oid filter) {
  return is_owner(filter, GetUserId()) ||
         pg_class_aclcheck(filter, GetUserId(), ACL_TRUNCATE) == ACLCHECK_OK;
}

const char* has_filter(const char* full_name) {
  return psprintf(
      "EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) "
      "pg_catalog.to_regclass(%s) AND relkind OPERATOR(pg_catalog.=) 'f')",
      quote_literal_cstr(full_name));
}

void run_on_other_nodes(const char* condition, const char* command) {
  const PGFunction function = sending_function();
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
  for (const auto* part : each<List>(rows))
    failed += *static_cast<const char*>(linitial(part)) == 'f';
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

// Once per session: views are for people, but also for tools that ask every minute.
void say_shows_one_node(Oid filter) {
  static bool is_told = false;
  if (is_told || likely(!acts_on_all_nodes(filter))) return;
  is_told = true;
  ereport(NOTICE, errmsg("views of filters show those of this node only"),
          errhint("Type: SELECT * FROM run_command_on_all_nodes($$SELECT json_agg(s) FROM "
                  "streamfilter_stats s$$)."));
}

// ---- gates -------------------------------------------------------------------------------------

namespace {

constexpr uint16 kGate = 1;  // beside 0, the object itself

// Of a trigger, without one that a shard has: its writer is at the gate of another node.
Oid filter_at_origin(const Trigger* trigger, Relation table) {
  const uint64 shard = shard_in_name(trigger->tgname);
  if (shard != 0 && shard == shard_in_name(RelationGetRelationName(table))) return InvalidOid;
  return trigger->tgisclone ? find_declared(trigger, table).binding.filter : trigger->tgconstrrelid;
}

}  // namespace

void lock_gate(Oid filter, LOCKMODE mode) {
  LockDatabaseObject(RelationRelationId, filter, kGate, mode);
}

const char* close_gate_call(const char* full_name) {
  return psprintf("PERFORM pg_catalog.set_config('lock_timeout', %s, true); %s",
                  quote_literal_cstr(GetConfigOption("lock_timeout", false, false)),
                  node_call(full_name, nullptr, nullptr));
}

void prepare_to_write(Oid table_oid) {
  if (likely(!is_citus_loaded()) || !OidIsValid(table_oid)) return;
  Relation table = try_relation_open(table_oid, AccessShareLock);
  if (table == nullptr) return;
  bool is_judged = false;
  if (table->rd_rel->relhastriggers)
    visit_own_triggers(table, [&](const Trigger* trigger, TriggerKind) {
      is_judged = true;
      if (const Oid filter = filter_at_origin(trigger, table); OidIsValid(filter))
        lock_gate(filter, RowExclusiveLock);
    });
  relation_close(table, NoLock);
  if (!is_judged || likely(!is_any_set()) || !speaks_for_all_nodes() || !is_distributed(table_oid))
    return;
  for (const Setting& setting : all_settings())
    if (setting.reach != Reach::local && is_set(setting)) require_reach(setting, table_oid);
}

void prepare_to_write(const QueryDesc* query) {
  constexpr AclMode kChanges = ACL_INSERT | ACL_UPDATE | ACL_DELETE;
  if (likely(!is_citus_loaded())) return;
  for (const auto* used : each<SF_RELATION_PERMISSIONS>(SF_PERMISSIONS(query->plannedstmt))) {
    if ((used->requiredPerms & kChanges) != 0) prepare_to_write(used->relid);
  }
}

}  // namespace streamfilter::pg
