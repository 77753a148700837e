// All statistics of a filter. They outlive the slot: in a file over a clean restart, over a resize,
// and in an image as of then.
#pragma once

extern "C" {
#include "datatype/timestamp.h"
}

#include "core/advise/tuning.hpp"
#include "pg/shmem/counter_list.hpp"

namespace streamfilter::pg {

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
