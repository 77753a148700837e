// A filter on other servers as the current backend knows it: which servers, and which slices where.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/remote/connect.hpp"

namespace streamfilter::pg {

// Where a slice is. Its epoch is that of the move which has brought it there; 0: it has never
// moved.
struct SlicePlace {
  int server;
  uint32 epoch;
};

struct RemoteFilter {
  const FilterRelation* relation;
  struct PostgresFdwFilter*
      fdw_filter;         // behind postgres_fdw; nothing of what follows is used then
  Parameters parameters;  // of the whole filter, with its seed
  bool seed_known;        // otherwise no key can be looked for, and all slices count as unreachable
  int count;              // servers
  int home_count;         // of these, where slices were at first
  Connection** connections;
  bool* retired;       // of servers: another one stands at its place in the list
  uint64* opened;      // number of the connection on which the relation was found; 0: none
  uint64* checked;     // of slices that have moved, on which connection their place was checked
  const char* filter;  // quoted, with its schema
  SlicePlace* places;  // of the slices, as far as this session knows
  bool* to_find;       // of slices that were not there; to be found before the next use
  bool any_to_find;
  bool looked;                 // it was seen to that places are known where that is needed
  SliceDefinition slices;      // without `definition` and `producer`
  bool answered_in_full;       // no slice was unreachable when keys were inserted last
  TimestampTz in_order_until;  // until then keys are reserved in the order of servers; 0: at once
  int in_order_for;            // ms, how long that was
  SliceWork* work;             // per slice, not yet in shared memory
  RemoteFilter* next_changed;  // of those that this transaction changes
  bool changed;
};

// Where a search for a slice begins.
inline SlicePlace first_place(const RemoteFilter* remote, uint32 slice) {
  const MovedSlice* entry = find_moved_slice(remote->relation->options.first_places, slice);
  if (unlikely(entry != nullptr)) return {static_cast<int>(entry->server), entry->epoch};
  return {static_cast<int>(slice % static_cast<uint32>(remote->home_count)), 0};
}

// How many slices were on a server at first, and what the relation has there. The hashes of a key
// that travel depend on these, wherever its slices are: so the state of a slice can move.
inline uint32 slices_on(const RemoteFilter* remote, uint32 server) {
  const auto count = static_cast<uint32>(remote->home_count);
  return (remote->parameters.slices - server + count - 1) / count;
}
inline int home_of(const RemoteFilter* remote, uint32 slice) {
  return static_cast<int>(slice % static_cast<uint32>(remote->home_count));
}
inline uint32 number_at_home(const RemoteFilter* remote, uint32 slice) {
  return slice / static_cast<uint32>(remote->home_count);
}

}  // namespace streamfilter::pg
