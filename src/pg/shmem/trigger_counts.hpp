// Counts of each of our triggers, for each table that it fires for: a clone in a partition counts
// for itself. A session adds its counts to shared memory when its transaction ends. There is room
// for kMaxTriggers. Dropped triggers make room at commit. If that is not enough, a trigger that has
// not counted for an hour is evicted (it may have gone with a prepared transaction, or while the
// library was not loaded); until then, further triggers are not counted.
#pragma once

#include "core/advise/tuning.hpp"
#include "pg/shmem/counter_list.hpp"

namespace streamfilter::pg {

// Counts of this session that are not added yet. Never freed.
struct PendingTriggerCounts {
  Oid trigger;
  Oid filter;
  TriggerCounts counts;
  PendingTriggerCounts* next_dirty;
  bool dirty;
};

// Allocates at the first call.
PendingTriggerCounts* pending_trigger_counts(Oid trigger, Oid filter);

TriggerCounts* note_dirty(PendingTriggerCounts* pending);
inline TriggerCounts* counts_to_add_to(PendingTriggerCounts* pending) {
  return likely(pending->dirty) ? &pending->counts : note_dirty(pending);
}

// Adds this session's counts. Cannot raise.
void flush_trigger_counts();

// The counts of a trigger, and since when it counts. False: not known, because there was no room.
bool read_trigger_counts(Oid trigger, TriggerCounts* counts, TimestampTz* since);

// Of a dropped trigger, or a whole database (InvalidOid).
void forget_trigger_counts(Oid database, Oid trigger);

// Sets the counts to zero for a filter's triggers, or for all in this database (InvalidOid).
void reset_trigger_counts(Oid filter);

// For shared memory.
void request_trigger_counts();
void start_trigger_counts();

// All statistics of a filter. They outlive the slot: in a file over a clean restart, over a resize,
// and in an image as of then.

struct Statistics {
  SharedRowCounts counts;
  pg_atomic_uint64 found_at[kMaxRanks];        // repeats found, by position in the bucket
  pg_atomic_uint64 missed_at[kFillSteps + 1];  // new rows, by fill_step() at the time
  // Times of the state's creation, its last TRUNCATE, and the last reset of counters.
  mutable pg_atomic_uint64 created, last_reset, stats_reset;
};

inline TimestampTz time_in(pg_atomic_uint64& time) {
  return static_cast<TimestampTz>(pg_atomic_read_u64(&time));
}

// For a new state. Nobody else is counting.
void start_statistics(Statistics* stats, TimestampTz now);

// Sets the counters to zero.
void reset_statistics(Statistics* stats, TimestampTz now);

// For a state of another size, where positions and fill mean others.
void take_over_statistics(Statistics* to, const Statistics& from);

// The saved form: a value per name, without zeros, so that another version finds the names that it
// knows.
struct SavedStatistic {
  uint64 name;  // hash of the name
  uint64 value;
};
constexpr int kMaxSavedStatistics = RowCounts::kCount + kMaxRanks + kFillSteps + 1 + 3;

// Returns their number.
int save_statistics(const Statistics& stats, SavedStatistic* saved);
// Into statistics that have just been started.
void load_statistics(Statistics* stats, const SavedStatistic* saved, int count);

}  // namespace streamfilter::pg
