// A filter on other servers, as the current backend uses it. Slice i is on server i mod count, as
// slice i / count of a relation of the same name. The definition is sent when a server is first
// used. The seed is that of the first server, unless the filter has option seed.
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
  int64* look_again;       // in monotonic_us(): when the relation there is asked for its state anew
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

// Allocates in the current memory context, like the relation. Does not connect.
RemoteFilter* make_remote_filter(const FilterRelation* relation);

// Raises errors in the definitions that its servers would get.
void check_slice_definitions(const FilterRelation* relation);

// Learns the seed from the servers within reach.
void learn_seed(RemoteFilter* remote);

// Raises 08006: "truncate", for example, needs this server.
[[noreturn]] void raise_needs_server(const RemoteFilter* remote, int server, const char* what);

// The definition of the relation on a server; "": there is none, nullptr: the server is lost.
const char* look_up_definition(const RemoteFilter* remote, int server);

// Makes a server ready for calls. False: it is unreachable. Raises 55000 if it has another
// definition.
bool open_slices(RemoteFilter* remote, int server);

// Is one of the servers unreachable for this session?
bool has_unreachable_slices(const RemoteFilter* remote);

// Call before the transaction changes the filter.
void note_changed(RemoteFilter* remote);
// Call at the end of the transaction. After a commit, counts for each changed filter whether some
// keys are not remembered. Cannot raise.
void end_changed_filters(bool committed);

// Adds counts of slices to shared memory.
void flush_slice_work(RemoteFilter* remote);

// A definition that another server has sent, not completed. Raises what this version cannot read.
Definition definition_in(const char* text);

// Option k of the kind; nullptr if it has none.
const OptionSpec* find_k(const Parameters& parameters);

// Carries ALTER, RENAME, SET SCHEMA, DROP and functions on a whole filter to the relations on its
// servers, within one transaction with the local statement. A rollback undoes all of it. COMMIT
// fails if one of the servers is lost before.

// Gives conflict, persistence and the producer's description to each part. Raises 08006 if a server
// is lost.
void alter_on_holders(const FilterRelation* relation);

// `schema` and `name` are the former ones.
void rename_on_holders(const FilterRelation* relation, const char* schema, const char* name);

// A function of the extension with a filter as its argument, and its effect, for messages.
struct HolderFunction {
  const char *name, *what;
};

// Calls the function for each part, and returns the sum of results. Raises 08006 if a server is
// lost.
uint64 call_on_holders(const FilterRelation* relation, const HolderFunction& function);

// Call before the filter is dropped. Parts that belong to other filters stay, with a NOTICE.
void drop_on_holders(const FilterRelation* relation);

}  // namespace streamfilter::pg
