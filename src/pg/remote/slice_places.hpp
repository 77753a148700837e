// Finds the slices of a filter. A slice has one place at a time, with an epoch. The place answers
// for it until it is closed; after that it says where the slice has gone (option `moved`,
// catalog/moved_slices.hpp). So a session that asks a former place follows the slice. No session
// can ask a future place, because only a closed place names it.
#pragma once

#include "pg/remote/remote_filter.hpp"

namespace streamfilter::pg {

// The relation with a slice at a place, quoted, with its schema.
const char* relation_at(const RemoteFilter* remote, uint32 slice, const SlicePlace& place);

// Number of the slice in that relation.
uint32 number_at(const RemoteFilter* remote, uint32 slice, const SlicePlace& place);

// Result of a search.
enum class PlaceSearch : uint8 {
  found,        // the place is known
  unreachable,  // a server on the way is unreachable
};

// Follows a slice from its first place to its present one. Raises 55000 if that is on a server that
// option servers does not name, or is missing.
PlaceSearch find_place(RemoteFilter* remote, uint32 slice, SlicePlace* place);

// The same for several slices that were not at their assumed places; stores the results.
PlaceSearch find_places(RemoteFilter* remote, const uint32* slices, int count);

// The place after `at` of a slice that has left it; `at` itself if it has not. False: unreachable,
// or there is no such place (`missing`).
bool next_place(RemoteFilter* remote, uint32 slice, const SlicePlace& at, SlicePlace* next,
                bool* missing);

// Does the place of a moved slice fit the filter's present definition? Checked once per connection.
// Raises 55000 if not. False: unreachable.
bool check_place(RemoteFilter* remote, uint32 slice);

}  // namespace streamfilter::pg
