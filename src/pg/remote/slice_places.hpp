// Where the slices of a filter are. A slice has one place at a time, with an epoch, and the place
// answers for it only until it is closed; then it says where the slice has gone (option `moved`,
// catalog/moved_slices.hpp). So a session that asks at a former place is told, and follows; nobody
// can ask at one of the future, for only a place that is closed tells of it.
#pragma once

#include "pg/remote/remote_filter.hpp"

namespace streamfilter::pg {

// The relation that holds a slice at a place, quoted, with its schema.
const char* relation_at(const RemoteFilter* remote, uint32 slice, const SlicePlace& place);

// What number the slice has there.
uint32 number_at(const RemoteFilter* remote, uint32 slice, const SlicePlace& place);

// How it went.
enum class Search : uint8 {
  found,        // it is known where the slice is
  unreachable,  // one of the servers on the way to it
};

// Follows a slice from where it was at first to where it is. Raises 55000 if its place is on a
// server that option servers does not name, or is not there.
Search find_place(RemoteFilter* remote, uint32 slice, SlicePlace* place);

// The same for several that were not where they were thought to be; what is found is kept.
Search find_places(RemoteFilter* remote, const uint32* slices, int count);

// The place next to `at` of a slice that has left it; `at` itself if it has not. False:
// unreachable, or there is no such place (`missing`).
bool next_place(RemoteFilter* remote, uint32 slice, const SlicePlace& at, SlicePlace* next,
                bool* missing);

// Is what a slice that has moved lies in what its filter is now? It is asked once on a connection.
// Raises 55000 if not. False: unreachable.
bool check_place(RemoteFilter* remote, uint32 slice);

}  // namespace streamfilter::pg
