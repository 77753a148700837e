// A filter on other servers, as the current backend uses it. Slice i is on server i mod count, as
// slice i / count of a relation of the same name. The definition is sent when a server is first
// used. The seed is that of the first server, unless the filter has option seed.
#pragma once

#include "pg/remote/filter_parts.hpp"

namespace streamfilter::pg {

// Allocates in the current memory context, like the relation. Does not connect.
RemoteFilter* make_remote_filter(const FilterRelation* relation);

// Raises errors in the definitions that its servers would get.
void check_slice_definitions(const FilterRelation* relation);

// Learns the seed from the servers within reach.
void learn_seed(RemoteFilter* remote);

// Raises 55000: the server's relation has another definition.
[[noreturn]] void raise_other_definition(const RemoteFilter* remote, int server, const char* found,
                                         const char* wanted);

// Raises 08006: "truncate", for example, needs this server.
[[noreturn]] void raise_needs_server(const RemoteFilter* remote, int server, const char* what);

// The definition of the relation of this name on a server; "": there is none, nullptr: the server
// is lost.
const char* look_up_definition(const RemoteFilter* remote, int server, const char* name);

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

}  // namespace streamfilter::pg
