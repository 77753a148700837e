// Moves a slice of a filter to another of its servers while it is used. docs/servers.md, "Growing
// and moving", has the steps, and what a failure between two of them leaves.
#pragma once

#include "pg/remote/slice_places.hpp"

namespace streamfilter::pg {

// Uses transactions of its own on these servers, so raises 25001 in a transaction that uses filters
// there. False: the slice is there already. Raises 08006 if a server is lost meanwhile: the slice
// is then at its old or its new place, and the same call finishes the move; 55P03 if transactions
// that use the slice take too long; 0A000 if single slices of such a filter cannot be moved.
bool move_slice(RemoteFilter* remote, uint32 slice, int server);

// The same in the course of a retirement, which `retirements` tells as option retirements does.
bool move_slice(RemoteFilter* remote, uint32 slice, int server, const char* retirements);

// From then on who knows of fewer retirements does not move the slice from where it is. False: it
// has just moved. Raises 55000 if others have retired a server meanwhile.
bool mark_slice(RemoteFilter* remote, uint32 slice, const char* retirements);

// Tells the slice's first place where it is, as a move that was interrupted has not.
void tell_first_place(RemoteFilter* remote, uint32 slice);

// Raises 55000 without option home_servers, 25001 within such a transaction.
void require_movable(const RemoteFilter* remote);

// Moves slices until servers have equally many, or differ by one; returns the number of moves.
int spread_slices(RemoteFilter* remote);

}  // namespace streamfilter::pg
