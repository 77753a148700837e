// A filter on other servers as the current backend uses it. Slice i lies at first on server i mod
// home_count, there as slice i / home_count of a relation of the same name; where it has moved to
// since, slice_places.hpp tells. The definition travels when a server is
// first used; the seed of the hashes is that of the first server, unless the filter has one of its
// own.
#pragma once

#include "pg/remote/filter_parts.hpp"

namespace streamfilter::pg {

// In the current memory context, as is the relation. Connects to nothing.
RemoteFilter* make_remote_filter(const FilterRelation* relation);

// Raises what is wrong with the definitions that its servers would get.
void check_slice_definitions(const FilterRelation* relation);

// Learns the seed, as far as servers can be reached.
void learn_seed(RemoteFilter* remote);

// Raises 55000: what a server has is not what is asked for here.
[[noreturn]] void raise_other_definition(const RemoteFilter* remote, int server, const char* found,
                                         const char* wanted);

// Makes a server ready to be called. False: it is unreachable. Raises 55000 if another definition
// is there.
bool open_slices(RemoteFilter* remote, int server);

// Raises 55000 if a slice has moved to a server that the definition here does not know of.
void check_is_named(const RemoteFilter* remote, uint64 slice, uint32 server);

// Takes over what a server where slices were at first says of those that have left it. Was any of
// it news?
bool keep_places(RemoteFilter* remote, int server, const MovedSlices& moved);

// Is one of the servers unreachable for this session?
bool has_unreachable_slices(const RemoteFilter* remote);

// The transaction is about to change the filter.
void note_changed(RemoteFilter* remote);
// It ends. If it has committed, counts for each filter that it has changed whether its keys are not
// remembered everywhere. Cannot raise.
void end_changed_filters(bool committed);

// Adds what was counted, and where slices are, to shared memory.
void flush_slice_work(RemoteFilter* remote);

}  // namespace streamfilter::pg
