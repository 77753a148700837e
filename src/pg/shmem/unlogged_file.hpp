// Unlogged filters over a clean restart.
#pragma once

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Reads what the last shutdown has written, and registers the writing at this one. Called by the
// postmaster when shared memory exists.
void start_unlogged_file();

// Before shared memory exists: sets stored_filters to how many filters the files have.
void count_stored_filters();

// What did not fit then waits, in a slot that is `counted`, until somebody uses the filter: its
// bytes. 0: none do. Takes directory_lock.
uint64 waiting_bytes(Oid database, Oid relation);
// Reads them into a slot that is being built, if they are of this life. False: they are not, or
// damaged.
bool read_waiting(FilterSlot* slot, int64 life);

}  // namespace streamfilter::pg
