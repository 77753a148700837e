// Taking a server out of those that hold a filter. Its slices move to the others. Where a search
// for its slices began, on the server itself, it begins at their last places from then on: option
// first_places says so, and another server stands at its place in option servers, so that the
// numbers of the rest stay. Another producer still has the former list, and must not move slices by
// it: where each slice is says how many servers were retired, and refuses who knows of fewer.
#pragma once

#include "pg/remote/filter_parts.hpp"

namespace streamfilter::pg {

struct Retirement {
  int moved;                 // slices
  const char* servers;       // the new value of option servers
  const char* first_places;  // likewise; nullptr: none
  const char* retired;       // likewise
};

// Moves the slices of the server, if it can be reached; otherwise looks for slices that have left
// it on the others. Raises 08006 if the server is lost and has, or may have, slices, or if another
// one is lost; and the errors of move_slice.
Retirement retire_server(RemoteFilter* remote, int server);

}  // namespace streamfilter::pg
