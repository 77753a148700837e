#include "pg/server/postgres.hpp"

#include "pg/remote/part_definition.hpp"
#include "pg/remote/slice_places.hpp"

namespace streamfilter::pg {
namespace {

// restarts of a search whose place was left meanwhile
constexpr int kMaxSearches = 3;

[[noreturn]] void raise_missing(const RemoteFilter* remote, uint32 slice, const SlicePlace& place) {
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("slice %u of filter \"%s\" is missing on server \"%s\"", slice,
                 remote->relation->name, remote->connections[place.server]->name),
          errdetail("There is no relation %s.", relation_at(remote, slice, place)),
          errhint("Restore that server, and name the servers of the filter in the same order for "
                  "all producers."));
  pg_unreachable();
}

// Reads what the relation at a place says about slices that have left it.
bool read_list(RemoteFilter* remote, uint32 slice, const SlicePlace& at, MovedSlices* moved,
               bool* missing) {
  Connection* connection = remote->connections[at.server];
  *missing = false;
  *moved = {};
  const char* text;
  if (!ask_again_if_ended(connection, [&] {
        return read_option(connection, relation_at(remote, slice, at), "moved", &text);
      }))
    return false;
  *missing = text == nullptr;
  if (text != nullptr && text[0] != '\0' && !read_moved_slices(text, moved))
    raise_protocol_violation(connection, "It does not tell where slices have moved");
  return true;
}

bool is_same(const SlicePlace& a, const SlicePlace& b) {
  return a.server == b.server && a.epoch == b.epoch;
}

}  // namespace

uint32 number_at(const RemoteFilter* remote, uint32 slice, const SlicePlace& place) {
  return place.epoch == 0 ? number_at_home(remote, slice) : 0;
}

const char* relation_at(const RemoteFilter* remote, uint32 slice, const SlicePlace& place) {
  if (place.epoch == 0) return remote->filter;
  return quote_qualified_identifier(remote->slices.schema,
                                    name_of_moved_slice(remote->slices.name, slice, place.epoch));
}

bool next_place(RemoteFilter* remote, uint32 slice, const SlicePlace& at, SlicePlace* next,
                bool* missing) {
  MovedSlices moved;
  *next = at;
  if (!read_list(remote, slice, at, &moved, missing)) return false;
  const MovedSlice* entry = find_moved_slice(moved, number_at(remote, slice, at));
  if (entry == nullptr) return !*missing;
  if (entry->epoch <= at.epoch)
    raise_protocol_violation(remote->connections[at.server], "It tells of a move of the past");
  check_is_named(remote, slice, entry->server);
  *next = {static_cast<int>(entry->server), entry->epoch};
  return true;
}

PlaceSearch find_place(RemoteFilter* remote, uint32 slice, SlicePlace* place) {
  bool missing = false;
  for (int i = 0; i < kMaxSearches; ++i) {
    SlicePlace next = first_place(remote, slice);
    do {
      *place = next;
      if (next_place(remote, slice, *place, &next, &missing)) continue;
      if (!missing) return PlaceSearch::unreachable;
    } while (!missing && !is_same(next, *place));
    // A relation that will be made at its first use holds all of its slices.
    if (!missing || place->epoch == 0) return PlaceSearch::found;
  }
  raise_missing(remote, slice, *place);
}

bool check_place(RemoteFilter* remote, uint32 slice) {
  const SlicePlace& place = remote->places[slice];
  Connection* connection = remote->connections[place.server];
  if (likely(remote->checked[slice] == connection->number)) return true;
  const char* found = look_up_definition(
      remote, place.server, name_of_moved_slice(remote->slices.name, slice, place.epoch));
  if (found == nullptr) return false;
  // A place that is gone says so when it is asked.
  if (found[0] != '\0' && !is_as_asked(remote, 1, found))
    raise_other_definition(remote, place.server, found, definition_of_slice(remote));
  remote->checked[slice] = connection->number;
  return true;
}

// Nearly always the first place knows, for all of its slices at once.
PlaceSearch find_places(RemoteFilter* remote, const uint32* slices, int count) {
  bool learned = false;
  int read = -1;  // the server whose list this is
  MovedSlices moved;
  for (int i = 0; i < count; ++i) {
    const SlicePlace first = first_place(remote, slices[i]);
    bool missing;
    if (first.epoch > 0) {
      learned |= find_place(remote, slices[i], &remote->places[slices[i]]) == PlaceSearch::found;
      continue;
    }
    if (first.server == read) continue;
    if (!read_list(remote, slices[i], first, &moved, &missing)) return PlaceSearch::unreachable;
    learned |= keep_places(remote, read = first.server, moved);
  }
  for (int i = 0; i < count && !learned; ++i)
    if (find_place(remote, slices[i], &remote->places[slices[i]]) == PlaceSearch::unreachable)
      return PlaceSearch::unreachable;
  return PlaceSearch::found;
}

}  // namespace streamfilter::pg
