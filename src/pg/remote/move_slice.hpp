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

// The same in the course of a retirement, which `retirements` tells as option retirements does.
bool move_slice(RemoteFilter* remote, uint32 slice, int server, const char* retirements);

// From then on who knows of fewer retirements does not move the slice from where it is. False: it
// has just moved. Raises 55000 if others have retired a server meanwhile.
bool mark_slice(RemoteFilter* remote, uint32 slice, const char* retirements);

// Raises 55000 without option home_servers, 25001 within such a transaction.
void require_movable(const RemoteFilter* remote);

// Until all servers hold equally many, or one more than others; returns how many it has moved.
int spread_slices(RemoteFilter* remote);

}  // namespace streamfilter::pg
