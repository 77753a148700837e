#include "pg/server/postgres.hpp"

extern "C" {
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
}

#include "pg/catalog/retirements.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/remote/move_slice.hpp"
#include "pg/remote/protocol.hpp"
#include "pg/remote/retire_server.hpp"
#include "pg/remote/slice_places.hpp"

namespace streamfilter::pg {
namespace {

[[noreturn]] void raise_not_empty(const RemoteFilter* remote, uint32 slice, int server) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("slice %u of filter \"%s\" cannot be found", slice, remote->relation->name),
          errdetail("Server \"%s\" is lost, and no other one says that it has the slice.",
                    remote->connections[server]->name),
          errhint("Bring the server back. If it is gone for good, so are the keys of the slice: "
                  "DROP the filter, create it anew, and fill it with streamfilter_warm()."));
  pg_unreachable();
}

constexpr int kMaxMarks = 5;  // so often others may move a slice meanwhile

[[noreturn]] void raise_is_moved(const RemoteFilter* remote, uint32 slice) {
  ereport(
      ERROR, errcode(ERRCODE_OBJECT_IN_USE),
      errmsg("slice %u of filter \"%s\" is being moved by others", slice, remote->relation->name),
      errhint("Repeat the call."));
  pg_unreachable();
}

// Does a search for the slice begin on the server?
bool begins_on(const RemoteFilter* remote, uint32 slice, int server) {
  return first_place(remote, slice).server == server;
}

int count_on(const RemoteFilter* remote, int server) {
  int count = 0;
  for (uint32 i = 0; i < remote->parameters.slices; ++i)
    count += remote->places[i].server == server;
  return count;
}

// Otherwise the call would end in the middle, with marks that keep all others from moving slices.
void require_marks(const RemoteFilter* remote) {
  for (int i = 0; i < remote->count; ++i)
    if (const Connection* connection = remote->connections[i];
        !remote->retired[i] && connection->ready && !can_mark(connection))
      raise_version(connection);
}

// The server with the fewest slices; -1: there is no other.
int find_target(const RemoteFilter* remote, int server) {
  int target = -1;
  for (int i = 0; i < remote->count; ++i) {
    if (i == server || remote->retired[i] || is_unreachable(remote->connections[i])) continue;
    if (target < 0 || count_on(remote, i) < count_on(remote, target)) target = i;
  }
  return target;
}

// A slice must be found only once.
void take_found(RemoteFilter* remote, int at, int server, const char* text, bool* found) {
  MovedSlices list;
  if (text == nullptr || text[0] == '\0') return;
  const bool sound = read_moved_slices(text, &list);
  for (int i = 0; sound && i < list.count; ++i) {
    const uint32 slice = list.entries[i].slice;
    if (slice >= remote->parameters.slices || !begins_on(remote, slice, server)) continue;
    if (found[slice]) raise_not_empty(remote, slice, server);
    found[slice] = true;
    remote->places[slice] = {at, list.entries[i].epoch};
  }
}

// Finds the server's slices by asking those that have them, because it no longer answers.
void look_for_slices(RemoteFilter* remote, int server) {
  auto* found = static_cast<bool*>(palloc0(remote->parameters.slices));
  for (int i = 0; i < remote->count; ++i) {
    if (i == server || remote->retired[i]) continue;
    const char* text;
    if (!ensure_connected(remote->connections[i]) ||
        !list_made(remote->connections[i], &remote->slices, Made::places, &text))
      raise_needs_server(remote, i, "retire a server of");
    take_found(remote, i, server, text, found);
  }
  for (uint32 i = 0; i < remote->parameters.slices; ++i)
    if (begins_on(remote, i, server) && !found[i]) raise_not_empty(remote, i, server);
}

void find_all(RemoteFilter* remote, int server, bool is_lost) {
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    if (is_lost && begins_on(remote, i, server)) continue;
    if (find_place(remote, i, &remote->places[i]) == PlaceSearch::unreachable)
      raise_needs_server(remote, remote->places[i].server, "retire a server of");
    if (is_lost && remote->places[i].server == server) raise_not_empty(remote, i, server);
  }
  if (is_lost) look_for_slices(remote, server);
}

// As the places of slices are told of it: of two producers that retire servers at once, the one
// goes on whose mark the first slice has.
const char* describe_retirement(const RemoteFilter* remote, int server) {
  return psprintf("%d:%d:%s",
                  retired_servers_in(options_of_filter(remote->relation->relid)).count + 1,
                  server + 1, identity_of_filter(remote->relation->relid));
}

// From here on only this producer moves slices, until the others have the new list.
void mark_all(RemoteFilter* remote, int server, bool is_lost, const char* retirements) {
  auto* marked = static_cast<bool*>(palloc0(sizeof(bool) * static_cast<Size>(remote->count)));
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    SlicePlace* place = &remote->places[i];
    for (int j = 0;; ++j) {
      const bool is_known = is_lost && begins_on(remote, i, server);
      if (!is_known && find_place(remote, i, place) == PlaceSearch::unreachable)
        raise_needs_server(remote, place->server, "retire a server of");
      if (place->epoch == 0 && marked[place->server]) break;
      if (mark_slice(remote, i, retirements)) break;
      if (is_known || j == kMaxMarks) raise_is_moved(remote, i);
    }
    if (place->epoch == 0) marked[place->server] = true;
  }
}

int move_all(RemoteFilter* remote, int server, const char* retirements) {
  int moved = 0;
  for (uint32 i = 0; i < remote->parameters.slices; ++i)
    if (remote->places[i].server == server)
      moved += move_slice(remote, i, find_target(remote, server), retirements);
    else
      // Another server will have this one's number in the list.
      tell_first_place(remote, i);
  return moved;
}

const char* list_servers(const RemoteFilter* remote, int server, int instead) {
  StringInfoData text;
  initStringInfo(&text);
  for (int i = 0; i < remote->count; ++i)
    appendStringInfo(&text, "%s%s", i > 0 ? ", " : "",
                     quote_identifier(remote->connections[i == server ? instead : i]->name));
  return text.data;
}

const char* list_retired(const RemoteFilter* remote, int server) {
  const RetiredServers before = retired_servers_in(options_of_filter(remote->relation->relid));
  StringInfoData text;
  initStringInfo(&text);
  for (int i = 0; i < before.count; ++i) appendStringInfo(&text, "%u, ", before.numbers[i]);
  appendStringInfo(&text, "%d", server + 1);
  return text.data;
}

const char* list_first_places(const RemoteFilter* remote, int server) {
  MovedSlices list = remote->relation->options.first_places;
  const char* text = nullptr;
  for (uint32 i = 0; i < remote->parameters.slices; ++i) {
    if (!begins_on(remote, i, server)) continue;
    const SlicePlace& place = remote->places[i];
    text = add_moved_slice(list, {i, static_cast<uint32>(place.server), place.epoch});
    if (!read_moved_slices(text, &list)) elog(ERROR, "could not list the places of slices");
  }
  return text;
}

}  // namespace

Retirement retire_server(RemoteFilter* remote, int server) {
  require_movable(remote);
  const bool is_lost = !ensure_connected(remote->connections[server]);
  const int instead = find_target(remote, server);
  if (instead < 0)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("filter \"%s\" is on no other server", remote->relation->name),
            errhint("Add one at the end: ALTER FOREIGN TABLE %s OPTIONS (SET servers '...').",
                    quote_identifier(remote->relation->name)));
  find_all(remote, server, is_lost);
  require_marks(remote);
  const char* retirements = describe_retirement(remote, server);
  mark_all(remote, server, is_lost, retirements);
  const int moved = is_lost ? 0 : move_all(remote, server, retirements);
  return {moved, list_servers(remote, server, instead), list_first_places(remote, server),
          list_retired(remote, server)};
}

}  // namespace streamfilter::pg
