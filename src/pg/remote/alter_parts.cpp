#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/alter_parts.hpp"
#include "pg/remote/remote_transaction.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_lost(const RemoteFilter* remote, int server, const char* what) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("cannot %s filter \"%s\" now", what, remote->relation->name),
          errdetail("Server \"%s\" is lost.", remote->connections[server]->name),
          errhint("Repeat it when the server is back. Where it is gone for good, SET "
                  "streamfilter.mode = off lets DROP act here only."));
  pg_unreachable();
}

void connect_homes(RemoteFilter* remote) {
  forget_lost_time();
  connect_together(remote->connections, remote->count);
}

// Who owns the relation on the server? Raises if the server is lost.
Ownership owner_at(RemoteFilter* remote, int server, const char* relation, const char* what) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!ask_again_if_ended(connection, [&] { return read_owner(connection, relation, &found); }))
    raise_lost(remote, server, what);
  return found;
}

// ---- DROP ---------------------------------------------------------------------------------------

void change_at(RemoteFilter* remote, int server, const char* command, const char* what) {
  if (!change_slices(remote->connections[server], command)) raise_lost(remote, server, what);
}

void say_stays(const RemoteFilter* remote, int server, const char* relation, const char* detail) {
  ereport(
      NOTICE,
      errmsg("filter \"%s\" stays on server \"%s\" as it is", remote->relation->name,
             remote->connections[server]->name),
      errdetail_internal("%s", detail),
      errhint("Where no producer uses it any more, type there: DROP FOREIGN TABLE %s.", relation));
}

void warn_of_lost(const RemoteFilter* remote, int server) {
  ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("filter \"%s\" stays on server \"%s\", which is lost", remote->relation->name,
                 remote->connections[server]->name),
          errdetail("A new filter of that name does not go on with it."),
          errhint("When the server is back, type there: DROP FOREIGN TABLE %s.", remote->filter));
}

// Does the relation there belong to this filter only, and not to another producer that still uses
// it? Says so if it stays.
bool may_drop_at(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!ensure_connected(connection) || !read_owner(connection, remote->filter, &found)) {
    warn_of_lost(remote, server);
    return false;
  }
  if (found.owned == Owned::absent) return false;
  const bool is_own = strcmp(found.identity, identity_of_filter(remote->relation->relid)) == 0;
  if (found.owned == Owned::by_us && is_own) return true;
  say_stays(remote, server, remote->filter,
            is_own ? _("It belongs to another role there than the one that the user mapping names.")
                   : _("It was made by another producer."));
  return false;
}

// ---- RENAME -------------------------------------------------------------------------------------

// Says so if the relation of the former name stays.
void rename_at(RemoteFilter* remote, int server, const char* schema, const char* name) {
  const char *to_schema = remote->slices.schema, *to_name = remote->slices.name;
  const char* relation = quote_qualified_identifier(schema, name);
  const Ownership found = owner_at(remote, server, relation, "rename");
  if (found.owned == Owned::by_others)
    say_stays(remote, server, relation,
              _("It belongs to another role there than the one that the user mapping names."));
  if (found.owned != Owned::by_us) return;
  if (strcmp(name, to_name) != 0)
    change_at(remote, server,
              psprintf("ALTER FOREIGN TABLE %s RENAME TO %s", relation, quote_identifier(to_name)),
              "rename");
  if (strcmp(schema, to_schema) != 0)
    change_at(remote, server,
              psprintf("ALTER FOREIGN TABLE %s SET SCHEMA %s",
                       quote_qualified_identifier(schema, to_name), quote_identifier(to_schema)),
              "rename");
}

// ---- functions of the parts ---------------------------------------------------------------------

// Adds the function's result on that server, if the relation is there.
void call_at(RemoteFilter* remote, int server, const PartFunction& function, uint64* sum) {
  const char* found = look_up_definition(remote, server);
  if (found != nullptr && found[0] == '\0') return;
  if (found == nullptr ||
      !call_slices(remote->connections[server], function.name, remote->filter, sum))
    raise_lost(remote, server, function.what);
}

void say_renamed(const RemoteFilter* remote) {
  ereport(NOTICE, errmsg("filter \"%s\" is renamed on its servers, too", remote->relation->name),
          errhint("Rename it on each other producer, too: otherwise that one starts with an empty "
                  "filter of the former name."));
}

}  // namespace

void alter_parts(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i) {
    const Ownership found = owner_at(remote, i, remote->filter, "alter");
    if (found.owned == Owned::absent) continue;
    SliceDefinition to = remote->slices;
    to.producer =
        describe_producer(relation, i, found.identity[0] != '\0' ? found.identity : nullptr);
    if (!alter_slices(remote->connections[i], remote->filter, &to)) raise_lost(remote, i, "alter");
  }
}

void rename_parts(const FilterRelation* relation, const char* schema, const char* name) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i) rename_at(remote, i, schema, name);
  say_renamed(remote);
}

void drop_parts(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i)
    if (may_drop_at(remote, i))
      change_at(remote, i, psprintf("DROP FOREIGN TABLE %s", remote->filter), "drop");
}

uint64 call_parts(const FilterRelation* relation, const PartFunction& function) {
  RemoteFilter* remote = make_remote_filter(relation);
  uint64 sum = 0;
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i) call_at(remote, i, function, &sum);
  return sum;
}

}  // namespace streamfilter::pg
