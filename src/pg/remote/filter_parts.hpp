// A filter on other servers, as the current backend knows it: its servers, and the places of its
// slices.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/remote/connect.hpp"

namespace streamfilter::pg {

// Place of a slice. The epoch counts its moves; 0: never moved.
struct SlicePlace {
  int server;
  uint32 epoch;
};

struct RemoteFilter {
  const FilterRelation* relation;
  struct PostgresFdwFilter* fdw_filter;  // behind postgres_fdw; then the fields below are unused
  Parameters parameters;                 // of the whole filter, with its seed
  bool seed_known;  // without it, no key can be looked up, and all slices count as unreachable
  int count;        // of servers
  int home_count;   // of these, the first holders of slices
  Connection** connections;
  bool* retired;       // per server: another one has its place in the list
  uint64* opened;      // number of the connection on which the relation was found; 0: none
  uint64* checked;     // per moved slice, the connection on which its place was checked
  const char* filter;  // quoted, with its schema
  SlicePlace* places;  // of the slices, as far as this session knows
  bool* to_find;       // slices that were not found; to find before the next use
  bool any_to_find;
  bool looked;             // places are known wherever that is needed
  SliceDefinition slices;  // without `definition` and `producer`
  bool answered_in_full;   // no slice was unreachable when keys were last inserted
  int64 in_order_until;  // in monotonic_us(): until then, reserve keys in the order of servers; 0:
                         // all at once
  int in_order_for;      // ms, the length of that time
  SliceWork* work;       // per slice, not yet in shared memory
  RemoteFilter* next_changed;  // in the list of filters that this transaction changes
  bool changed;
};

inline int home_of(const RemoteFilter* remote, uint32 slice) {
  return static_cast<int>(slice % static_cast<uint32>(remote->home_count));
}

// Where a search for a slice begins.
inline SlicePlace first_place(const RemoteFilter* remote, uint32 slice) {
  const MovedSlice* entry = find_moved_slice(remote->relation->options.first_places, slice);
  if (unlikely(entry != nullptr)) return {static_cast<int>(entry->server), entry->epoch};
  return {home_of(remote, slice), 0};
}

// Number of slices that began on a server, as in its relation. The hashes of a key that travel
// depend on it wherever its slices are now, so that a slice's state can move.
inline uint32 slices_on(const RemoteFilter* remote, int server) {
  const auto count = static_cast<uint32>(remote->home_count);
  return (remote->parameters.slices - static_cast<uint32>(server) + count - 1) / count;
}
inline uint32 number_at_home(const RemoteFilter* remote, uint32 slice) {
  return slice / static_cast<uint32>(remote->home_count);
}

}  // namespace streamfilter::pg
