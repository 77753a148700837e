// What all sessions know of other servers: which could not be reached when somebody tried last, and
// what their slices have done. It is a hint for sessions without a connection: who has one uses it,
// whatever is said here. Servers that can be reached take no room.
#pragma once

extern "C" {
#include "datatype/timestamp.h"
}

namespace streamfilter::pg {

// How long an unreachable server is left alone between two attempts of any session, in ms.
constexpr int kRetryPause = 1000;

// Since when a server of this database cannot be reached; 0: as far as is known, it can.
TimestampTz unreachable_since(Oid server);

// May this session try to connect? To an unreachable server one may after each pause.
bool may_connect(Oid server);
void note_unreachable(Oid server);
void note_reached(Oid server);

// Work of one slice of a filter on another server, or of the filter as a whole.
struct SliceCounts {
  uint64 answered;        // keys that the slice has been asked for
  uint64 unanswered;      // keys that were tested without it
  uint64 messages;        // to its server; one that concerns several slices counts for the first
  uint64 sent, received;  // bytes
  // Where the slice was when it answered last, or the session has learned of a move: server of the
  // filter's list, from 0. Epoch 0: it has never moved.
  uint32 server, epoch;
};
struct FilterCounts {
  uint64 tested = 0, accepted = 0, discarded = 0;
  uint64 would_discard = 0, diverted = 0, ahead = 0;
  uint64 unremembered = 0;  // transactions whose keys a server has not committed
};

// Add to the counts of a filter of this database. Where there is no room, those are forgotten that
// were added to longest ago.
// Of a filter with more slices than this the rest is not counted: no filter takes the room of all
// others.
constexpr uint32 kMaxCountedSlices = 256;
void add_slice_counts(Oid relation, uint32 slice, const SliceCounts& counts);
void add_filter_counts(Oid relation, const FilterCounts& counts);
// When a filter is dropped its counts go; InvalidOid: those of all filters of the database.
bool has_counts(Oid database, Oid relation);
void forget_counts(Oid database, Oid relation);
// Zeros if nothing was counted.
SliceCounts read_slice_counts(Oid relation, uint32 slice);
FilterCounts read_filter_counts(Oid relation);

// For shared memory.
void request_server_health();
void start_server_health();

}  // namespace streamfilter::pg
