// Background workers that restore filters (handle/restore_worker.cpp), as who needs them starts
// them.
#pragma once

extern "C" {
#include "postmaster/bgworker.h"
}

namespace streamfilter::pg {

// Is this process one? And may rows come before all of the filter is there?
extern bool is_restore_worker, opens_early;

// The error by which it gives up a filter that another session wants to lock.
constexpr int kGivesWay = ERRCODE_OBJECT_IN_USE;

BackgroundWorker make_restore_worker(const char* function, const char* name);

// Starts one for a database: all that is saved there; or for one filter of it. nullptr: there are
// to be none, or no place is free.
BackgroundWorkerHandle* start_restore_worker(Oid database, Oid filter);

// Has it not ended?
bool is_running(BackgroundWorkerHandle* worker);

}  // namespace streamfilter::pg
