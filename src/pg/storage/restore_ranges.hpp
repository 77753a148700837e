// A filter whose rows come while it is restored: range by range (filter_directory.hpp), from the
// image and what the log has for them. A range is some slices, or some chunks of one, if there are
// few and a key uses one line.
#pragma once

#include "pg/storage/state_reader.hpp"

namespace streamfilter::pg {

// Lets others use a slot that is being built.
struct Opening {
  void (*open)(void* arg);
  void* arg;
  bool leaves_rest;  // to the next one who needs it
};

// The image lies in order, a key in one slice; and nothing but them is needed. The log was read.
bool can_read_by_ranges(const StateReading& reading);

// The image is used, says its header. Reads what of it rows need in any case. False: there are less
// than `least` ranges.
bool divide_into_ranges(StateReading* reading, uint32 least);

uint32 range_of_key(const FilterSlot* slot, uint64 hash);

// Opens the slot and restores it. An error leaves it open, and to the next one who needs more.
void restore_by_ranges(StateReading* reading, int64 first_row, const Opening* opening);

// Before a key is looked up, added or forgotten: waits until its slice is there, or sees to it.
void await_slices(FilterSlot* slot, const FilterRelation* relation, uint64 ranges);
inline void await_all_slices(FilterSlot* slot, const FilterRelation* relation) {
  if (unlikely(!is_whole(slot))) await_slices(slot, relation, PG_UINT64_MAX);
}
inline void await_slice(FilterSlot* slot, const FilterRelation* relation, uint64 hash) {
  if (likely(is_whole(slot))) return;
  await_slices(slot, relation, UINT64CONST(1) << range_of_key(slot, hash));
}

// Background workers that restore filters (handle/restore_worker.cpp), as who needs them starts
// them.

// Is this process one? And may rows come before all of the filter is there?
extern bool is_restore_worker, opens_early;

// The error by which it gives up a filter that another session wants to lock.
constexpr int kGivesWay = ERRCODE_OBJECT_IN_USE;
[[noreturn]] void give_way();

// The launcher of the workers ends when it has gone through the databases. PostgreSQL does not
// start it again then, not after a crash either: the first session that uses a filter does.
BackgroundWorker make_launcher();
void start_restore_launcher_once();

// Starts one for a database: all that is saved there; or for one filter of it. nullptr: there are
// to be none, or no place is free.
BackgroundWorkerHandle* start_restore_worker(Oid database, Oid filter);

// Runs all of a worker's work, and ends the process. Told to end, it does so without a FATAL, which
// those who watch the log would count: its statement is cancelled, and it exits.
void run_worker(void (*work)(Datum), Datum arg);
// The first thing that the work does.
void connect_worker(Oid database);

// Has it not ended?
bool is_running(BackgroundWorkerHandle* worker);

}  // namespace streamfilter::pg
