#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include "core/filter/definition.hpp"
#include "core/format/slicing.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/alter_parts.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/problem_report.hpp"

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

void take_seed_of(RemoteFilter* remote, const char* found) {
  Parameters parameters;
  if (remote->seed_known || !read_found(found, &parameters)) return;
  remote->parameters.seed = parameters.seed;
  remote->seed_known = true;
}

// Who owns the relation on the server? Raises if the server is lost.
Ownership owner_at(RemoteFilter* remote, int server, const char* relation, const char* what) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!ask_again_if_ended(connection, [&] { return read_owner(connection, relation, &found); }))
    raise_lost(remote, server, what);
  return found;
}

// ---- ALTER
// -----------------------------------------------------------------------------------------

// What other servers are told beside the definition.
SliceDefinition wanted_on(RemoteFilter* remote, int server) {
  SliceDefinition wanted = remote->slices;
  const Ownership before = owner_at(remote, server, remote->filter, "alter");
  wanted.producer = describe_producer(remote->relation, server,
                                      before.identity[0] != '\0' ? before.identity : nullptr);
  return wanted;
}

void alter_at(RemoteFilter* remote, int server, const char* relation, const SliceDefinition& to) {
  if (!alter_slices(remote->connections[server], relation, &to))
    raise_lost(remote, server, "alter");
}

// Raises unless the part has become what it should, so that the whole statement fails.
void compare(RemoteFilter* remote, int server, const char* name, uint32 slices,
             const SliceDefinition& wanted) {
  SliceDefinition asked = wanted;
  bool made;
  asked.name = name;
  const char* found = define_slices(remote->connections[server], &asked, &made);
  if (found == nullptr) raise_lost(remote, server, "alter");
  if (found[0] != '\0' && !is_as_asked(remote, slices, found))
    raise_other_definition(remote, server, found, asked.definition);
}

void alter_home(RemoteFilter* remote, int server, const char* found, Reach reach) {
  const uint32 slices = slices_on(remote, server);
  SliceDefinition wanted = wanted_on(remote, server);
  if (reach == Reach::alter) {
    const bool as_asked = is_as_asked(remote, slices, found);
    wanted.definition = as_asked ? nullptr : request_for(remote, slices);
    alter_at(remote, server, remote->filter, wanted);
  }
  wanted.definition = definition_on(remote, server);
  compare(remote, server, remote->slices.name, slices, wanted);
}

// ---- DROP
// ------------------------------------------------------------------------------------------

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

// May the relation be altered there? Says so if not.
bool is_ours_at(RemoteFilter* remote, int server, const char* relation, const char* what) {
  const Ownership found = owner_at(remote, server, relation, what);
  if (found.owned == Owned::by_others)
    say_stays(remote, server, relation,
              _("It belongs to another role there than the one that the user mapping names."));
  return found.owned == Owned::by_us;
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

void drop_at(RemoteFilter* remote, int server, const char* relation) {
  change_at(remote, server, psprintf("DROP FOREIGN TABLE %s", relation), "drop");
}

// ---- RENAME
// ----------------------------------------------------------------------------------------

// Former and present name of a filter.
struct Renaming {
  RemoteFilter* now;
  RemoteFilter before;
};

void rename_at(const Renaming* renaming, int server, const char* before, const char* name) {
  const char *from = renaming->before.slices.schema, *to = renaming->now->slices.schema;
  if (!is_ours_at(renaming->now, server, quote_qualified_identifier(from, before), "rename"))
    return;
  if (strcmp(before, name) != 0)
    change_at(renaming->now, server,
              psprintf("ALTER FOREIGN TABLE %s RENAME TO %s",
                       quote_qualified_identifier(from, before), quote_identifier(name)),
              "rename");
  if (strcmp(from, to) != 0)
    change_at(renaming->now, server,
              psprintf("ALTER FOREIGN TABLE %s SET SCHEMA %s",
                       quote_qualified_identifier(from, name), quote_identifier(to)),
              "rename");
}

// ---- functions of the parts
// ------------------------------------------------------------------------

// Adds the function's result on that server, if the relation is there.
void call_at(RemoteFilter* remote, int server, const PartFunction& function, uint64* sum) {
  const char* found = look_up_definition(remote, server, remote->slices.name);
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

FixedOptions find_fixed_options(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  const Parameters& whole = remote->parameters;
  FixedOptions fixed;
  connect_homes(remote);
  uint32 slices = 0, probes_before = 1;
  Parameters part{};
  for (int i = 0; i < remote->count; ++i) {
    const char* found = look_up_definition(remote, i, remote->slices.name);
    if (found == nullptr) raise_lost(remote, i, "alter");
    if (found[0] == '\0' || !read_found(found, &part)) return fixed;
    slices += part.slices;
    if (remote->count > 1) probes_before = owner_at(remote, i, remote->filter, "alter").probes;
  }
  const OptionSpec* k = whole.slicing != Slicing::horizontal ? find_k(part) : nullptr;
  const auto bits = k != nullptr ? part.integer(k->word) * probes_before : 0;
  if (part.kind != whole.kind) fixed.kind = find_ops(part.kind)->name;
  if (slices != whole.slices) fixed.slices = slices;
  if (fixed.kind == nullptr && bits > 0 && bits != whole.integer(k->word)) fixed.k = bits;
  return fixed;
}

void alter_parts(const FilterRelation* relation, Reach reach) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i) {
    const char* found = look_up_definition(remote, i, remote->slices.name);
    if (found == nullptr && reach == Reach::alter) raise_lost(remote, i, "alter");
    if (found == nullptr || found[0] == '\0') continue;
    take_seed_of(remote, found);
    alter_home(remote, i, found, reach);
  }
}

void rename_parts(const FilterRelation* relation, const char* schema, const char* name) {
  RemoteFilter* remote = make_remote_filter(relation);
  Renaming renaming = {remote, *remote};
  renaming.before.slices.schema = schema;
  renaming.before.slices.name = name;
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i) rename_at(&renaming, i, name, remote->slices.name);
  say_renamed(remote);
}

void drop_parts(const FilterRelation* relation) {
  RemoteFilter* remote = make_remote_filter(relation);
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i)
    if (may_drop_at(remote, i)) drop_at(remote, i, remote->filter);
}

uint64 call_parts(const FilterRelation* relation, const PartFunction& function) {
  RemoteFilter* remote = make_remote_filter(relation);
  uint64 sum = 0;
  connect_homes(remote);
  for (int i = 0; i < remote->count; ++i) call_at(remote, i, function, &sum);
  return sum;
}

}  // namespace streamfilter::pg
