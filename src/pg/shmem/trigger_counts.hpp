// What each trigger of ours has done, on each table that it fires for: a clone of a trigger, in a
// partition, counts for itself. A session counts by itself and adds that to shared memory when its
// transaction ends. There is room for kMaxTriggers. Those that are dropped make room when that
// commits. Where that is not enough, one that has not counted for an hour gives way (it may have
// gone with a prepared transaction, or while the library was not loaded); until then the next ones
// are not counted.
#pragma once

extern "C" {
#include "datatype/timestamp.h"
}

#include "pg/shmem/row_counts.hpp"

namespace streamfilter::pg {

// What the session has counted and not added yet. Never freed.
struct TriggerTally {
  Oid trigger;
  Oid filter;
  TriggerCounts counts;
  TriggerTally* next_dirty;
  bool dirty;
};

// Allocates the first time.
TriggerTally* trigger_tally(Oid trigger, Oid filter);

void note_dirty(TriggerTally* tally);
inline TriggerCounts* counts_to_add_to(TriggerTally* tally) {
  if (unlikely(!tally->dirty)) note_dirty(tally);
  return &tally->counts;
}

// Adds what the session has counted. Cannot raise.
void flush_trigger_counts();

// The counts of a trigger, and since when it counts. False: nobody knows, there was no room.
bool read_trigger_counts(Oid trigger, TriggerCounts* counts, TimestampTz* since);

// Is there anything to be forgotten of a trigger, or of a whole database (InvalidOid)?
bool has_trigger_counts(Oid database, Oid trigger);
void forget_trigger_counts(Oid database, Oid trigger);

// Sets them to zero for the triggers of a filter, or of all in this database (InvalidOid).
void reset_trigger_counts(Oid filter);

// For shared memory.
void request_trigger_counts();
void start_trigger_counts();

}  // namespace streamfilter::pg
