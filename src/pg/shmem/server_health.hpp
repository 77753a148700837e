// What all sessions know of other servers: which ones were unreachable at the last attempt, and the
// work of their slices. Only a hint: a session with a working connection uses it, whatever this
// says. Reachable servers take no room.
#pragma once

#include "pg/shmem/counter_list.hpp"

namespace streamfilter::pg {

// Pause between two attempts of any sessions to connect to an unreachable server, in ms.
constexpr int kRetryPause = 1000;

// Since when a server of this database is unreachable; 0: as far as known, it is reachable.
TimestampTz unreachable_since(Oid server);

// May this session try to connect? For an unreachable server, one session may after each pause.
bool may_connect(Oid server);
void note_unreachable(Oid server);
void note_reached(Oid server);

// Counts of a filter on other servers as a whole; of its slices: a message about several counts for
// the first.
struct FilterWork {
  RowCounts counts;
  TimestampTz since;  // 0: nothing was counted
};

// Add to the counts of a filter of this database. Where there is no room, those are forgotten that
// were added to longest ago.
// Of a filter with more slices than this the rest is not counted: no filter takes the room of all
// others.
constexpr uint32 kMaxCountedSlices = 256;
void add_slice_counts(Oid relation, uint32 slice, const SliceCounts& added);
void add_filter_counts(Oid relation, const RowCounts& counts);
// Forgets a dropped filter's counts; InvalidOid: all of the database.
void forget_counts(Oid database, Oid relation);
// Sets counts of a filter of this database to zero, or of all (InvalidOid).
void reset_counts(Oid relation);
// Zeros if nothing was counted.
SliceCounts read_slice_counts(Oid relation, uint32 slice);
FilterWork read_filter_work(Oid relation);

// The state of a filter's part on a server, as that tells it when a session looks: in which life
// it is, and how many rows its log has had, which only grows within a life. Zeros: it has no life
// before its first key, or does not tell the number. The system identifier there would add nothing:
// lives are random, and only copies of the whole server share one, with that identifier.
struct PartState {
  int64 life, number;
};
// Remembers it until this server ends. Was the part made anew since, now if `made`, or has it fewer
// rows than at the last look? Says so once, and counts it.
bool has_gone_back(Oid relation, uint32 server, PartState now, bool made);

// For unlogged_file.cpp, while no other process runs: counts of filters.
void visit_filter_work(void (*visit)(Oid database, Oid relation, const FilterWork& work, void* arg),
                       void* arg);
void put_filter_work(Oid database, Oid relation, const FilterWork& work);

// For shared memory.
void request_server_health();
void start_server_health();

}  // namespace streamfilter::pg
