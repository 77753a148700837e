// What all sessions know of other servers: which cannot be reached now, and what their slices have
// done. When a server is lost it is left alone for a second, then one session tries; each time in
// vain the time doubles, up to a minute. So sessions do not all wait for it.
#pragma once

extern "C" {
#include "datatype/timestamp.h"
#include "port/atomics.h"
}

namespace streamfilter::pg {

// A server as seen from one database. Never freed.
struct ServerState {
  Oid database;
  Oid server;
  pg_atomic_uint64 lost_since;  // TimestampTz; 0: it is not lost
  pg_atomic_uint64 retry_at;    // when somebody may try again
  pg_atomic_uint32 failures;    // in a row
};

// Work of one slice of a filter on another server, or of the filter as a whole.
struct SliceCounts {
  uint64 answered;        // keys that the slice has been asked for
  uint64 unanswered;      // keys that were judged without it
  uint64 messages;        // to its server; one that concerns several slices counts for the first
  uint64 sent, received;  // bytes
};
struct FilterCounts {
  uint64 tested = 0, accepted = 0, discarded = 0;
  uint64 unremembered = 0;  // transactions whose keys a server has not committed
};

// nullptr if there is no room: then each session finds out for itself.
ServerState* server_state(Oid server);

// May this session use the server now? At the end of a pause it may for one session, which must
// call one of the two below then; `patience` (ms) is how long the others go on waiting for that.
bool may_try(ServerState* state, int patience);
void note_lost(ServerState* state);
void note_reached(ServerState* state);
inline bool is_lost(const ServerState* state) {
  return state != nullptr &&
         pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&state->lost_since)) != 0;
}

// Add to the counts of a filter of this database; what has no room is not counted.
void add_slice_counts(Oid relation, uint32 slice, const SliceCounts& counts);
void add_filter_counts(Oid relation, const FilterCounts& counts);
// When a filter is dropped its counts go; InvalidOid: those of all filters of the database.
bool has_counts(Oid database, Oid relation);
void forget_counts(Oid database, Oid relation);
// Zeros if nothing was counted.
SliceCounts read_slice_counts(Oid relation, uint32 slice);
FilterCounts read_filter_counts(Oid relation);

// For shared memory.
void request_lost_servers();
void start_lost_servers();

}  // namespace streamfilter::pg
