// A filter on other servers, as the current backend knows it, and which of its slices is where.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/remote/connect.hpp"

namespace streamfilter::pg {

struct RemoteFilter {
  const FilterRelation* relation;
  Parameters parameters;  // of the whole filter, with its seed
  bool seed_known;  // without it, no key can be looked up, and all slices count as unreachable
  int count;        // of servers
  Connection** connections;
  uint64* opened;          // number of the connection on which the relation was found; 0: none
  const char* filter;      // quoted, with its schema
  SliceDefinition slices;  // without `definition` and `producer`
  bool answered_in_full;   // no slice was unreachable when keys were last inserted
  int64 in_order_until;  // in monotonic_us(): until then, reserve keys in the order of servers; 0:
                         // all at once
  int in_order_for;      // ms, the length of that time
  SliceCounts* work;     // per slice, not yet in shared memory
  RemoteFilter* next_changed;  // in the list of filters that this transaction changes
  bool changed;
};

inline int server_of_slice(const RemoteFilter* remote, uint32 slice) {
  return static_cast<int>(slice % static_cast<uint32>(remote->count));
}

// Number of slices on a server, and that of a slice among them.
inline uint32 slices_on(const RemoteFilter* remote, int server) {
  const auto count = static_cast<uint32>(remote->count);
  return (remote->parameters.slices - static_cast<uint32>(server) + count - 1) / count;
}
inline uint32 number_on_server(const RemoteFilter* remote, uint32 slice) {
  return slice / static_cast<uint32>(remote->count);
}

}  // namespace streamfilter::pg
