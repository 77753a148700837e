#include "pg/server/postgres.hpp"

#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/server_options.hpp"
#include "pg/ddl/server_ddl.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kMostNames = 10;

List* filters_of_server(const char* name) {
  return filters_depending_on(ForeignServerRelationId,
                              GetForeignServerByName(name, false)->serverid);
}

bool names_server(Oid relid, const char* server) {
  RelationOptions relation_options;
  relation_options.servers = find_option(options_of_filter(relid), "servers");
  List* names;
  Fault fault;
  if (!read_server_names(&relation_options, &names, fault)) return false;
  for (const auto* name : each<char>(names))
    if (strcmp(name, server) == 0) return true;
  return false;
}

// nullptr: another session has dropped it, which is no reason to refuse the ALTER.
const char* name_if_there(Oid relid) {
  const char* name = get_rel_name(relid);
  const char* schema = get_namespace_name(get_rel_namespace(relid));
  return name != nullptr ? quote_qualified_identifier(schema, name) : nullptr;
}

bool goes_on_with(const char* list, const char* before) {
  const Size length = strlen(before);
  return strncmp(list, before, length) == 0 && (list[length] == '\0' || list[length] == ',');
}

bool changes(DefElem* option, List* before) {
  if (!is_place_option(option->defname)) return false;
  const char* former = find_option(before, option->defname);
  return option->defaction == DEFELEM_DROP || former == nullptr ||
         !goes_on_with(value_of(option), former);
}

}  // namespace

// A server that holds slices must stay another PostgreSQL server, and one whose filters are on
// several must not become one. Other errors in its filters must not prevent the ALTER.
void check_altered_server(const char* name) {
  const ForeignServer* server = GetForeignServerByName(name, false);
  if (!is_wrapper_of_filters(server->fdwid)) return;
  const bool is_remote = server_options(server->options).is_remote;
  for (const Oid relid : each_oid(filters_of_server(name))) {
    const bool named = names_server(relid, name);
    if (named ? is_remote
              : !is_remote || find_option(options_of_filter(relid), "servers") == nullptr)
      continue;
    if (named)
      ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
              errmsg("filter \"%s\" cannot be held by server \"%s\"", get_rel_name(relid), name),
              errdetail("It has none of the options host, port and dbname."));
    ereport(ERROR, errcode(ERRCODE_INVALID_TABLE_DEFINITION),
            errmsg("filter \"%s\" has both option servers and a server on another PostgreSQL",
                   get_rel_name(relid)),
            errhint("Create it on SERVER streamfilter, or leave out option servers."));
  }
}

void check_renamed_server(const char* before, const char* name) {
  for (const Oid relid : each_oid(filters_of_server(name)))
    if (names_server(relid, before))
      ereport(ERROR, errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
              errmsg("cannot rename server \"%s\"", before),
              errdetail("Filter \"%s\" has it in option servers.", get_rel_name(relid)),
              errhint("Drop the filter, or set its option servers to others, before."));
}

bool changes_address(const AlterForeignServerStmt* statement) {
  const ForeignServer* server = GetForeignServerByName(statement->servername, true);
  if (server == nullptr || !is_wrapper_of_filters(server->fdwid)) return false;
  for (auto* option : each<DefElem>(statement->options))
    if (changes(option, server->options)) return true;
  return false;
}

void warn_of_new_address(const AlterForeignServerStmt* statement) {
  TextBuffer names;
  int count = 0;
  const char* first = nullptr;
  for (const Oid filter : each_oid(filters_of_server(statement->servername))) {
    const char* name = name_if_there(filter);
    if (name == nullptr || ++count > kMostNames) continue;
    appendStringInfo(&names, "%s%s", first != nullptr ? ", " : "", name);
    if (first == nullptr) first = name;
  }
  if (count == 0) return;
  if (count > kMostNames) appendStringInfo(&names, " and %d others", count - kMostNames);
  ereport(
      WARNING,
      errmsg("what filters know on server \"%s\" is at its former address", statement->servername),
      errdetail("They are: %s. Unless the same PostgreSQL server, or a copy of it, has the new "
                "address, they start empty there, and repeats are stored.",
                names.data),
      errhint(
          "To keep what they know, let a standby of the former server have the new address, and "
          "promote it. To fill them anew, type SELECT streamfilter_warm(%s, ...).",
          quote_literal_cstr(first)));
}

}  // namespace streamfilter::pg
