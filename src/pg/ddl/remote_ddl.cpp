#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
}

#include <initializer_list>

#include "core/kind/kind_registry.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/alter_parts.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

// nullptr: its state is here, or its definition is unreadable.
const FilterRelation* find_remote(Oid relid) {
  if (!OidIsValid(relid) || !is_filter(relid)) return nullptr;
  Fault fault;
  const FilterRelation* relation = read_filter_relation(relid, fault);
  return relation != nullptr && is_remote(relation) ? relation : nullptr;
}

// Also if its definition is unreadable, as for an owner who must not use a server.
bool is_held_elsewhere(Oid relid) {
  if (find_option(options_of_filter(relid), "servers") != nullptr) return true;
  const ForeignServer* server = GetForeignServerExtended(server_of(relid), FSV_MISSING_OK);
  ServerOptions options;
  Fault fault;
  return server != nullptr && read_server_options(server->options, &options, fault) &&
         options.is_remote;
}

// Does this session leave filters alone?
bool is_off() { return !enabled || (session_mode.given && session_mode.mode == FilterMode::off); }

// ---- ALTER
// -----------------------------------------------------------------------------------------

// How far a change of options must reach.
enum class Scope : uint8 { here, agreement, servers };

Scope scope_of_option(const char* name) {
  for (const char* own : {"mode", "probe", "lost_slice", "max_future"})
    if (strcmp(name, own) == 0) return Scope::here;
  if (strcmp(name, "servers") == 0) return Scope::agreement;
  return Scope::servers;
}

Scope scope_of(const AlterTableCmd* command) {
  if (command->subtype == AT_ChangeOwner) return Scope::here;
  if (command->subtype != AT_GenericOptions) return Scope::agreement;
  Scope scope = Scope::here;
  ListCell* cell;
  foreach (cell, castNode(List, command->def))
    scope = Max(scope, scope_of_option(castNode(DefElem, lfirst(cell))->defname));
  return scope;
}

bool changes_owner(const AlterTableStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->cmds)
    if (lfirst_node(AlterTableCmd, cell)->subtype == AT_ChangeOwner) return true;
  return false;
}

// Has the owner what connecting needs? Otherwise the owner could not even drop the filter here.
bool may_connect(const FilterRelation* relation) {
  for (int i = 0; i < relation->server_count; ++i) {
    if (!has_user_mapping(relation->owner, relation->servers[i])) return false;
    const UserMapping* mapping = GetUserMapping(relation->owner, relation->servers[i]);
    if (!superuser_arg(relation->owner) && requires_password(mapping->options) &&
        find_option(mapping->options, "password") == nullptr)
      return false;
  }
  return true;
}

// The new owner connects from now on, with its own user mapping.
void check_new_owner(const FilterRelation* relation) {
  if (is_restoring()) return;
  const char* owner = GetUserNameFromId(relation->owner, false);
  for (int i = 0; i < relation->server_count; ++i) {
    const char* server = server_of_oid(relation->servers[i])->servername;
    if (!has_user_mapping(relation->owner, relation->servers[i]))
      ereport(WARNING, errcode(ERRCODE_UNDEFINED_OBJECT),
              errmsg("role \"%s\", which owns filter \"%s\" now, cannot connect to server \"%s\"",
                     owner, relation->name, server),
              errdetail("It has no user mapping for it."),
              errhint("Type: CREATE USER MAPPING FOR %s SERVER %s OPTIONS (user '...', "
                      "password '...').",
                      quote_identifier(owner), quote_identifier(server)));
  }
  ereport(NOTICE,
          errmsg("filter \"%s\" keeps its owner on the servers that hold it", relation->name),
          errhint("If the user mappings of role \"%s\" name other users than those of the former "
                  "owner, type there: ALTER FOREIGN TABLE %s OWNER TO ...",
                  owner, quote_identifier(relation->name)));
}

[[noreturn]] void raise_fixed(const FilterRelation* relation, const char* option) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("option \"%s\" of filter \"%s\" cannot be changed while servers hold its slices",
                 option, relation->name),
          errhint("To begin anew with it, type: DROP FOREIGN TABLE %s, and CREATE it with the new "
                  "option; then fill it with streamfilter_warm().",
                  quote_identifier(relation->name)));
  pg_unreachable();
}

// Adds an option that must be given from now on.
void add_fixed(const FilterRelation* relation, StringInfo options, const char* name,
               const char* value) {
  if (value == nullptr) return;
  const char* given = find_option(options_of_filter(relation->relid), name);
  const bool is_auto = given != nullptr && strcmp(name, "kind") == 0 && strcmp(given, "auto") == 0;
  if (given != nullptr && !is_auto) raise_fixed(relation, name);
  appendStringInfo(options, "%s%s %s %s", options->len > 0 ? ", " : "", is_auto ? "SET" : "ADD",
                   name, quote_literal_cstr(value));
}

// True: the filter was altered once more, and its servers with it.
bool give_fixed_options(const FilterRelation* relation) {
  const FixedOptions fixed = find_fixed_options(relation);
  StringInfoData options;
  initStringInfo(&options);
  add_fixed(relation, &options, "kind", fixed.kind);
  add_fixed(relation, &options, "slices",
            fixed.slices > 0 ? psprintf("%u", fixed.slices) : nullptr);
  add_fixed(relation, &options, "k", fixed.k > 0 ? psprintf(UINT64_FORMAT, fixed.k) : nullptr);
  if (options.len == 0) return false;
  ereport(NOTICE, errmsg("filter \"%s\" keeps the options that place its keys", relation->name),
          errdetail("Also altered: OPTIONS (%s).", options.data));
  alter_options(relation->relid, options.data);
  return true;
}

// ---- RENAME
// ----------------------------------------------------------------------------------------

struct NameBefore {
  Oid relid;
  NameData schema, name;
};
NameBefore name_before;

// ---- DROP
// ------------------------------------------------------------------------------------------

void warn_of_remains(Oid relid) {
  const char* name = qualified_name(relid);
  const char* filter = get_rel_name(relid);
  ereport(WARNING,
          errmsg("filter \"%s\" is dropped here only: its servers keep what they know", filter),
          errhint("Type on each of them: DROP FOREIGN TABLE %s.", name));
}

}  // namespace

const char* alter_options(Oid relid, const char* changes) {
  const char* command =
      psprintf("ALTER FOREIGN TABLE %s OPTIONS (%s)", qualified_name(relid), changes);
  SPI_connect();
  if (SPI_execute(command, false, 0) < 0) elog(ERROR, "could not run \"%s\"", command);
  SPI_finish();
  return command;
}

void alter_on_servers(Oid relid, const AlterTableStmt* statement) {
  const FilterRelation* relation = find_remote(relid);
  if (relation == nullptr) return;
  if (changes_owner(statement)) check_new_owner(relation);
  Scope scope = Scope::here;
  ListCell* cell;
  foreach (cell, statement->cmds) scope = Max(scope, scope_of(lfirst_node(AlterTableCmd, cell)));
  if (scope == Scope::here || !may_connect(relation)) return;
  if (scope == Scope::agreement && is_off()) return;
  if (scope == Scope::servers && give_fixed_options(relation)) return;
  alter_parts(relation, scope == Scope::servers ? Reach::alter : Reach::compare);
}

List* remote_filters_of(List* roles) {
  List* found = NIL;
  ListCell *role, *cell;
  foreach (cell, list_filters())
    foreach (role, roles)
      if (const Oid relid = lfirst_oid(cell);
          get_rolespec_oid(lfirst_node(RoleSpec, role), true) == owner_of(relid) &&
          is_held_elsewhere(relid))
        found = list_append_unique_oid(found, relid);
  return found;
}

void check_new_owners(List* filters) {
  if (filters == NIL) return;
  CommandCounterIncrement();
  ListCell* cell;
  foreach (cell, filters) {
    if (!is_filter(lfirst_oid(cell))) continue;
    Fault fault;
    const FilterRelation* relation = read_filter_relation(lfirst_oid(cell), fault);
    if (relation == nullptr)
      ereport(WARNING, fault_report(fault));
    else if (is_remote(relation))
      check_new_owner(relation);
  }
}

void note_name_before(Oid relid) {
  if (get_rel_relkind(relid) != RELKIND_FOREIGN_TABLE || !is_filter(relid)) return;
  name_before.relid = relid;
  namestrcpy(&name_before.name, get_rel_name(relid));
  namestrcpy(&name_before.schema, get_namespace_name(get_rel_namespace(relid)));
}

void rename_on_servers(Oid relid) {
  const FilterRelation* relation = find_remote(relid);
  if (relation == nullptr || name_before.relid != relid) return;
  name_before.relid = InvalidOid;
  rename_parts(relation, NameStr(name_before.schema), NameStr(name_before.name));
}

void rename_schema_on_servers(const char* before, const char* now) {
  const Oid schema = get_namespace_oid(now, false);
  ListCell* cell;
  foreach (cell, list_filters()) {
    const Oid relid = lfirst_oid(cell);
    const FilterRelation* relation =
        get_rel_namespace(relid) == schema ? find_remote(relid) : nullptr;
    if (relation != nullptr) rename_parts(relation, before, relation->name);
  }
}

void drop_on_servers(Oid relid) {
  const FilterRelation* relation = find_remote(relid);
  if (relation == nullptr) {
    if (is_held_elsewhere(relid)) warn_of_remains(relid);
    return;
  }
  if (is_off() || !may_connect(relation)) return warn_of_remains(relid);
  drop_parts(relation);
}

}  // namespace streamfilter::pg
