// All that a filter counts. It outlives the slot: over a clean restart, in a file; over a resize;
// and, as it was then, in an image.
#pragma once

extern "C" {
#include "datatype/timestamp.h"
}

#include "core/advise/tuning.hpp"
#include "pg/shmem/row_counts.hpp"

namespace streamfilter::pg {

struct Statistics {
  SharedRowCounts counts;
  pg_atomic_uint64 found_at[kMaxRanks];  // repeats that it has found, by position in the bucket
  pg_atomic_uint64 missed_at[kFillSteps + 1];  // rows that were new, by fill_step() at the time
  // Times: of the state, of its last TRUNCATE, of the counters' last zero.
  mutable pg_atomic_uint64 created, last_reset, stats_reset;
};

inline TimestampTz time_in(pg_atomic_uint64& time) {
  return static_cast<TimestampTz>(pg_atomic_read_u64(&time));
}

// Of a state that is made now. Nobody else is counting.
void start_statistics(Statistics* stats, TimestampTz now);

// Sets to zero what was counted.
void reset_statistics(Statistics* stats, TimestampTz now);

// Of a state of another size: positions and fill mean others there.
void take_over_statistics(Statistics* to, const Statistics& from);

// As they are saved: a value a name, those that are not zero, so that another version finds what it
// knows.
struct SavedStatistic {
  uint64 name;  // its hash
  uint64 value;
};
constexpr int kMaxSavedStatistics = RowCounts::kCount + kMaxRanks + kFillSteps + 1 + 3;

// Returns how many there are.
int save_statistics(const Statistics& stats, SavedStatistic* saved);
// Into those that have just been started.
void load_statistics(Statistics* stats, const SavedStatistic* saved, int count);

}  // namespace streamfilter::pg
