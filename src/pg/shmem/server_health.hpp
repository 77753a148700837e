// What all sessions know of other servers: which could not be reached when somebody tried last, and
// what their slices have done. It is a hint for sessions without a connection: who has one uses it,
// whatever is said here. Servers that can be reached take no room.
#pragma once

extern "C" {
#include "datatype/timestamp.h"
}

#include "pg/shmem/row_counts.hpp"

namespace streamfilter::pg {

// How long an unreachable server is left alone between two attempts of any session, in ms.
constexpr int kRetryPause = 1000;

// Since when a server of this database cannot be reached; 0: as far as is known, it can.
TimestampTz unreachable_since(Oid server);

// May this session try to connect? To an unreachable server one may after each pause.
bool may_connect(Oid server);
void note_unreachable(Oid server);
void note_reached(Oid server);

// Work of one slice of a filter on another server, or of the filter as a whole. A message that
// concerns several slices counts for the first.
struct SliceWork {
  SliceCounts counts;
  // Where the slice was when it answered last, or the session has learned of a move: server of the
  // filter's list, from 0. Epoch 0: it has never moved.
  uint32 server, epoch;
};
struct FilterWork {
  RowCounts counts;
  TimestampTz since;  // 0: nothing was counted
};

// Add to the counts of a filter of this database. Where there is no room, those are forgotten that
// were added to longest ago.
// Of a filter with more slices than this the rest is not counted: no filter takes the room of all
// others.
constexpr uint32 kMaxCountedSlices = 256;
void add_slice_work(Oid relation, uint32 slice, const SliceWork& work);
void add_filter_counts(Oid relation, const RowCounts& counts);
// When a filter is dropped its counts go; InvalidOid: those of all filters of the database.
bool has_counts(Oid database, Oid relation);
void forget_counts(Oid database, Oid relation);
// Sets those of a filter of this database to zero, or of all (InvalidOid).
void reset_counts(Oid relation);
// Zeros if nothing was counted.
SliceWork read_slice_work(Oid relation, uint32 slice);
FilterWork read_filter_work(Oid relation);

// For unlogged_file.cpp, while nobody else is there: what filters have counted.
void visit_filter_work(void (*visit)(Oid database, Oid relation, const FilterWork& work, void* arg),
                       void* arg);
void put_filter_work(Oid database, Oid relation, const FilterWork& work);

// For shared memory.
void request_server_health();
void start_server_health();

}  // namespace streamfilter::pg
