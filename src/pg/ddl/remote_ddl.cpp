#include "pg/server/postgres.hpp"

#include "core/base/text.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/remote_filter.hpp"

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

// ---- ALTER ------------------------------------------------------------------------------------

// What ALTER may change while servers hold a filter, since neither places nor bytes of keys follow
// from it.
struct OpenOption {
  const char* name;
  bool is_of_holders;  // acts on the servers
};
constexpr OpenOption kOpenOptions[] = {
    {"mode", false},    {"probe", false},   {"lost_slice", false}, {"max_future", false},
    {"conflict", true}, {"overfull", true}, {"persistence", true}};

bool changes_columns(const AlterTableCmd* command) {
  return command->subtype == AT_AddColumn || command->subtype == AT_DropColumn ||
         command->subtype == AT_AlterColumnType || command->subtype == AT_AlterColumnGenericOptions;
}

List* options_in(const AlterTableCmd* command) {
  return command->subtype == AT_GenericOptions ? castNode(List, command->def) : NIL;
}

bool reaches_holders(const AlterTableStmt* statement) {
  for (auto* command : each<AlterTableCmd>(statement->cmds))
    for (auto* option : each<DefElem>(options_in(command))) {
      const OpenOption* open = find_named(kOpenOptions, option->defname);
      if (open != nullptr && open->is_of_holders) return true;
    }
  return false;
}

bool changes_owner(const AlterTableStmt* statement) {
  for (auto* command : each<AlterTableCmd>(statement->cmds))
    if (command->subtype == AT_ChangeOwner) return true;
  return false;
}

// Has the owner what connecting needs? Otherwise the owner could not even drop the filter here.
bool may_ask_servers(const FilterRelation* relation) {
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

// `option`: nullptr for the columns.
[[noreturn]] void raise_fixed(Oid relid, const char* option) {
  const char* filter = get_rel_name(relid);
  ereport(
      ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
      option != nullptr ? errmsg("option \"%s\" of filter \"%s\" cannot be changed", option, filter)
                        : errmsg("columns of filter \"%s\" cannot be changed", filter),
      errdetail("What other servers know of a filter depends on them."),
      errhint("Make another filter as you want it (SELECT streamfilter_definition(%s) prints the "
              "commands of this one), fill it with streamfilter_warm(), and let triggers and "
              "queries use that one.",
              quote_literal_cstr(qualified_name(relid))));
}

// ---- RENAME -------------------------------------------------------------------------------------

struct NameBefore {
  Oid relid;
  NameData schema, name;
};
NameBefore name_before;

// ---- DROP ---------------------------------------------------------------------------------------

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

void check_may_alter(Oid relid, const AlterTableStmt* statement) {
  if (!OidIsValid(relid) || !is_filter(relid) || is_restoring()) return;
  const bool is_elsewhere = is_held_elsewhere(relid);
  for (const auto* command : each<AlterTableCmd>(statement->cmds)) {
    if (is_elsewhere && changes_columns(command)) raise_fixed(relid, nullptr);
    for (auto* changed : each<DefElem>(options_in(command))) {
      const char* option = changed->defname;
      if (strcmp(option, "servers") == 0 ||
          (is_elsewhere && find_named(kOpenOptions, option) == nullptr))
        raise_fixed(relid, option);
    }
  }
}

void alter_on_servers(Oid relid, const AlterTableStmt* statement) {
  const FilterRelation* relation = find_remote(relid);
  if (relation == nullptr) return;
  if (changes_owner(statement)) check_new_owner(relation);
  if (reaches_holders(statement) && may_ask_servers(relation)) alter_on_holders(relation);
}

List* remote_filters_of(List* roles) {
  List* found = NIL;
  for (const Oid relid : each_oid(list_filters()))
    for (auto* role : each<RoleSpec>(roles))
      if (get_rolespec_oid(role, true) == owner_of(relid) && is_held_elsewhere(relid))
        found = list_append_unique_oid(found, relid);
  return found;
}

void check_new_owners(List* filters) {
  if (filters == NIL) return;
  CommandCounterIncrement();
  for (const Oid filter : each_oid(filters)) {
    if (!is_filter(filter)) continue;
    Fault fault;
    const FilterRelation* relation = read_filter_relation(filter, fault);
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
  rename_on_holders(relation, NameStr(name_before.schema), NameStr(name_before.name));
}

void rename_schema_on_servers(const char* before, const char* now) {
  const Oid schema = get_namespace_oid(now, false);
  for (const Oid relid : each_oid(list_filters())) {
    const FilterRelation* relation =
        get_rel_namespace(relid) == schema ? find_remote(relid) : nullptr;
    if (relation != nullptr) rename_on_holders(relation, before, relation->name);
  }
}

void drop_on_servers(Oid relid) {
  const FilterRelation* relation = find_remote(relid);
  if (relation == nullptr) {
    if (is_held_elsewhere(relid)) warn_of_remains(relid);
    return;
  }
  if (is_off() || !may_ask_servers(relation)) return warn_of_remains(relid);
  drop_on_holders(relation);
}

}  // namespace streamfilter::pg
