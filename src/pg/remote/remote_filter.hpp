// A filter on other servers as the current backend uses it. Slice i lies at first on server i mod
// home_count, there as slice i / home_count of a relation of the same name; where it has moved to
// since, slice_places.hpp tells. The definition travels when a server is
// first used; the seed of the hashes is that of the first server, unless the filter has one of its
// own.
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
  uint64* opened;      // number of the connection on which the relation was found; 0: none
  const char* filter;  // quoted, with its schema
  SlicePlace* places;  // of the slices, as far as this session knows
  bool* to_find;       // of slices that were not there; to be found before the next use
  bool any_to_find;
  SliceDefinition slices;      // without `definition` and `producer`
  bool answered_in_full;       // no slice was unreachable when keys were inserted last
  TimestampTz in_order_until;  // until then keys are reserved in the order of servers; 0: at once
  int in_order_for;            // ms, how long that was
  SliceCounts* counts;         // per slice, not yet in shared memory
  RemoteFilter* next_changed;  // of those that this transaction changes
  bool changed;
};

// In the current memory context, as is the relation. Connects to nothing.
RemoteFilter* make_remote_filter(const FilterRelation* relation);

// Raises what is wrong with the definitions that its servers would get.
void check_slice_definitions(const FilterRelation* relation);

// Learns the seed, as far as servers can be reached.
void learn_seed(RemoteFilter* remote);

// Makes a server ready to be called. False: it is unreachable. Raises 55000 if another definition
// is there.
bool open_slices(RemoteFilter* remote, int server);

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

// The definition of a relation that holds one slice by itself.
const char* definition_of_slice(const RemoteFilter* remote);

// Raises 55000 if a slice has moved to a server that the definition here does not know of.
void check_is_named(const RemoteFilter* remote, uint64 slice, uint32 server);

// Takes over what a server where slices were at first says of those that have left it. Was any of
// it news?
bool keep_places(RemoteFilter* remote, int server, const MovedSlices& moved);

// The option k of the kind; nullptr: it has none.
const OptionSpec* find_k(const Parameters& parameters);

// Is one of the servers unreachable for this session?
bool has_unreachable_slices(const RemoteFilter* remote);

// The transaction is about to change the filter.
void note_changed(RemoteFilter* remote);
// It ends. If it has committed, counts for each filter that it has changed whether its keys are not
// remembered everywhere. Cannot raise.
void end_changed_filters(bool committed);

// Adds what was counted, and where slices are, to shared memory.
void flush_slice_counts(RemoteFilter* remote);

}  // namespace streamfilter::pg
