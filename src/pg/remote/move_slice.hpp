// Moving a slice of a filter to another of its servers while it is used. See docs/servers.md,
// "Growing and moving", for the steps and what a failure between two of them leaves.
#pragma once

#include "pg/remote/slice_places.hpp"

namespace streamfilter::pg {

// In transactions of its own on the servers concerned, so not in one that uses filters there:
// 25001. False: the slice is there already. Raises 08006 if a server is lost meanwhile: the slice
// is where it was, or where it was to go, and the same call brings it there; 55P03 if the
// transactions that use it take too long; 0A000 if slices of such a filter cannot lie by
// themselves.
bool move_slice(RemoteFilter* remote, uint32 slice, int server);

// Raises 55000 without option home_servers, 25001 within such a transaction.
void require_movable(const RemoteFilter* remote);

// Until all servers hold equally many, or one more than others; returns how many it has moved.
int spread_slices(RemoteFilter* remote);

}  // namespace streamfilter::pg
