#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "core/format/slicing.hpp"
#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/part_definition.hpp"
#include "pg/remote/remote_filter.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/transaction_use.hpp"

namespace streamfilter::pg {
namespace {

RemoteFilter* changed_filters = nullptr;  // of this transaction

bool has_lost_changes(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (lost_changes(remote->connections[i])) return true;
  return false;
}

// The definition may have been read again within the transaction.
bool comes_again(const RemoteFilter* remote) {
  for (const RemoteFilter* other = remote->next_changed; other != nullptr;
       other = other->next_changed)
    if (other->relation->relid == remote->relation->relid) return true;
  return false;
}

void take_seed(RemoteFilter* remote, uint64 seed) {
  remote->parameters.seed = seed;
  remote->seed_known = true;
}

// nullptr: the connection has failed.
const char* ask_for_definition(const RemoteFilter* remote, int server, const char* name) {
  SliceDefinition wanted = remote->slices;
  wanted.name = name;
  bool made;
  return define_slices(remote->connections[server], &wanted, &made);
}

// False: the server does not tell now.
bool find_seed(RemoteFilter* remote, int server, const char* name) {
  if (!ensure_connected(remote->connections[server])) return false;
  const char* found = ask_for_definition(remote, server, name);
  if (found == nullptr) return false;
  if (found[0] != '\0') take_seed(remote, definition_in(found).parameters.seed);
  return true;
}

// Drops what a filter that was dropped here has left there because the server was lost: a new
// filter of the same name must not take it over. False: the connection has failed.
bool drop_remains(RemoteFilter* remote, int server) {
  Connection* connection = remote->connections[server];
  Ownership found;
  if (!read_owner(connection, remote->filter, &found)) return false;
  if (found.owned != Owned::by_us || !was_dropped_here(found.identity)) return true;
  ereport(WARNING,
          errmsg("filter \"%s\" starts empty on server \"%s\"", remote->relation->name,
                 connection->name),
          errdetail("What the server had belongs to a filter of that name that was dropped."));
  return change_slices(connection, psprintf("DROP FOREIGN TABLE %s", remote->filter));
}

// It was built anew, or the server was lost when the filter was first used.
void warn_of_new_server(const RemoteFilter* remote, int server, int former) {
  ereport(WARNING,
          errmsg("filter \"%s\" starts empty on server \"%s\"", remote->relation->name,
                 remote->connections[server]->name),
          errdetail("Server \"%s\" has the filter already; this one did not have it.",
                    remote->connections[former]->name),
          errhint("If the server had keys before, restore it, or fill the filter anew: type SELECT "
                  "streamfilter_warm('%s', ...). Until then their repeats are stored.",
                  qualified_name(remote->relation->relid)));
}

// Makes sure that the slices exist. False: the connection has failed.
bool define_on(RemoteFilter* remote, int server, bool* made) {
  Connection* connection = remote->connections[server];
  SliceDefinition wanted = remote->slices;
  wanted.definition = definition_on(remote, server);
  wanted.producer = describe_producer(remote->relation, server);
  if (!drop_remains(remote, server)) return false;
  const char* found = define_slices(connection, &wanted, made);
  if (found == nullptr) return false;
  // Of two producers with random seeds that come at once, the other may have been faster.
  if (!remote->seed_known) {
    take_seed(remote, definition_in(found).parameters.seed);
    wanted.definition = definition_on(remote, server);
  }
  if (!is_as_asked(remote, slices_on(remote, server), found))
    raise_other_definition(remote, server, found, wanted.definition);
  // A relation made within a transaction may go with it.
  remote->opened[server] = *made && connection->level > 0 ? 0 : connection->number;
  return true;
}

bool open_on(RemoteFilter* remote, int server, bool* made) {
  Connection* connection = remote->connections[server];
  return ask_again_if_ended(connection, [&] {
    return remote->opened[server] == connection->number || define_on(remote, server, made);
  });
}

}  // namespace

RemoteFilter* make_remote_filter(const FilterRelation* relation) {
  auto* remote = static_cast<RemoteFilter*>(palloc0(sizeof(RemoteFilter)));
  remote->relation = relation;
  remote->parameters = relation->definition.parameters;
  remote->seed_known = relation->definition.is_given(Common::seed);
  remote->count = relation->server_count;
  remote->connections =
      static_cast<Connection**>(palloc(sizeof(Connection*) * relation->server_count));
  for (int i = 0; i < remote->count; ++i)
    remote->connections[i] = find_connection(relation->servers[i], relation->owner);
  remote->opened = static_cast<uint64*>(palloc0(sizeof(uint64) * relation->server_count));
  remote->work =
      static_cast<SliceCounts*>(palloc0(sizeof(SliceCounts) * remote->parameters.slices));
  SliceDefinition* slices = &remote->slices;
  slices->schema = get_namespace_name(get_rel_namespace(relation->relid));
  slices->name = relation->name;
  slices->conflict = name_of(relation->options.conflict);
  slices->persistence = name_of(relation->options.persistence);
  remote->filter = quote_qualified_identifier(slices->schema, slices->name);
  return remote;
}

const char* look_up_definition(const RemoteFilter* remote, int server, const char* name) {
  const char* found = nullptr;
  ask_again_if_ended(remote->connections[server],
                     [&] { return (found = ask_for_definition(remote, server, name)) != nullptr; });
  return found;
}

void raise_needs_server(const RemoteFilter* remote, int server, const char* what) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("cannot %s filter \"%s\" now", what, remote->relation->name),
          errdetail("Server \"%s\" is lost.", remote->connections[server]->name),
          errhint("Repeat it when the server is back."));
  pg_unreachable();
}

void raise_other_definition(const RemoteFilter* remote, int server, const char* found,
                            const char* wanted) {
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
      errmsg("filter \"%s\" has another definition on server \"%s\"", remote->relation->name,
             remote->connections[server]->name),
      errdetail("There it is %s, here %s.", found, wanted),
      errhint("IMPORT FOREIGN SCHEMA takes over the definition of a server that has one. To begin "
              "anew with this one, where no other producer uses it, type there: DROP FOREIGN "
              "TABLE %s.",
              remote->filter));
  pg_unreachable();
}

void check_slice_definitions(const FilterRelation* relation) {
  const RemoteFilter* remote = make_remote_filter(relation);
  for (int i = 0; i < remote->count; ++i) definition_on(remote, i);
}

// A new or rebuilt server must not bring its own seed while others have one: draws a new seed only
// if all servers say that they have none.
void learn_seed(RemoteFilter* remote) {
  if (remote->seed_known) return;
  forget_lost_time();
  connect_together(remote->connections, remote->count);
  bool all_asked = true;
  for (int i = 0; i < remote->count && !remote->seed_known; ++i)
    all_asked &= find_seed(remote, i, remote->slices.name);
  if (remote->seed_known || !all_asked) return;
  if (!pg_strong_random(&remote->parameters.seed, sizeof remote->parameters.seed))
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random seed"));
  open_slices(remote, 0);
}

// Makes all relations if it makes one.
bool open_slices(RemoteFilter* remote, int server) {
  bool made = false;
  if (!open_on(remote, server, &made)) return false;
  if (!made) return true;
  auto* made_on = static_cast<bool*>(palloc0(sizeof(bool) * static_cast<Size>(remote->count)));
  made_on[server] = true;
  int former = -1;  // a server that had the filter before
  for (int i = 0; i < remote->count; ++i)
    if (i != server && open_on(remote, i, &made_on[i]) && !made_on[i]) former = i;
  for (int i = 0; former >= 0 && i < remote->count; ++i)
    if (made_on[i]) warn_of_new_server(remote, i, former);
  pfree(made_on);
  return true;
}

bool has_unreachable_slices(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (is_unreachable(remote->connections[i])) return true;
  return false;
}

void note_changed(RemoteFilter* remote) {
  if (remote->changed) return;
  transaction_uses_filters = true;
  remote->changed = true;
  remote->next_changed = changed_filters;
  changed_filters = remote;
}

void end_changed_filters(bool committed) {
  for (RemoteFilter* remote = changed_filters; remote != nullptr; remote = remote->next_changed) {
    remote->changed = false;
    if (!committed || !has_lost_changes(remote) || comes_again(remote)) continue;
    RowCounts counts;
    counts[RowCount::unremembered] = 1;
    add_filter_counts(remote->relation->relid, counts);
  }
  changed_filters = nullptr;
}

void flush_slice_work(RemoteFilter* remote) {
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    SliceCounts* counts = &remote->work[i];
    if (!counts->any()) continue;
    add_slice_counts(remote->relation->relid, i, *counts);
    *counts = {};
  }
}

}  // namespace streamfilter::pg
