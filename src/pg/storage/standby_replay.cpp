// On a standby: brings a filter up to date with WAL replayed since the last look.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "storage/ipc.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
}

#include "core/format/layout.hpp"
#include "pg/server/lock_wait.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/storage/last_look.hpp"
#include "pg/storage/restore.hpp"
#include "pg/storage/standby_replay.hpp"
#include "pg/storage/state_reader.hpp"

namespace streamfilter::pg {
namespace {

// When was the current image saved? 0 if there is none.
TimestampTz image_time(Relation table, Oid filter, Snapshot snapshot) {
  TimestampTz saved = 0;
  StateScan scan(table, filter, snapshot);
  while (HeapTuple tuple = scan.next()) {
    ImageRow row;
    if (!read_row(table, tuple, &row)) continue;
    saved = row.saved;
    break;
  }
  scan.end();
  return saved;
}

// Applies what has become visible since the last look. False: everything must be read again.
bool play_news(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  // Before there was a header to be found, the seed was not known.
  if (saved->ran.count < 0 || pg_atomic_read_u32(&saved->has_header) == 0) return false;
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  if (standby && replayed == saved->replayed) return true;
  StateReading reading;
  if (!begin_reading(&reading, slot, relation, "following")) return true;
  reading.seen = saved;
  reading.next_number = pg_atomic_read_u64(&saved->next_number);
  bool complete = try_to_read(read_prepared, &reading) == nullptr;
  reading.snapshot = register_latest_snapshot();
  complete = complete &&
             image_time(reading.tables.images, relation->relid, reading.snapshot) == saved->image &&
             try_to_read(read_log, &reading) == nullptr && !reading.unsure;
  if (complete) {
    Header* block = block_of(slot);
    saved->ran.count = -1;  // an error in between: all must be read again
    replay_rows(reading, block, PG_INT64_MIN, saved->identity);
    pg_atomic_write_u64(&saved->next_number, reading.next_number);
    pg_atomic_fetch_add_u64(&saved->log_bytes, static_cast<int64>(reading.log.bytes));
    remember_snapshot(slot, reading.snapshot, replayed);
  }
  end_reading(&reading);
  return complete;
}

void stop_following(int, Datum slot) {
  const NoRaise marked;
  pg_atomic_write_u32(&reinterpret_cast<FilterSlot*>(DatumGetPointer(slot))->saved.following, 0);
  ConditionVariableBroadcast(&shared_state->built);
}

}  // namespace

void follow_log(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  LockWait wait(relation->relid);
  // One session works at a time; the others wait until the filter is as new as they need.
  ConditionVariablePrepareToSleep(&shared_state->built);
  for (;;) {
    uint32 idle = 0;
    if (pg_atomic_compare_exchange_u32(&saved->following, &idle, 1)) break;
    wait.sleep(&shared_state->built);
  }
  ConditionVariableCancelSleep();
  // Also when this process is told to end.
  PG_ENSURE_ERROR_CLEANUP(stop_following, PointerGetDatum(slot));
  {
    const bool promoted = !RecoveryInProgress();
    if (saved->follows) {
      const bool logged = relation->options.persistence == Persistence::logged;
      if (logged && !play_news(slot, relation)) load_again(slot, relation);
      if (promoted) saved->follows = false;
    }
  }
  PG_END_ENSURE_ERROR_CLEANUP(stop_following, PointerGetDatum(slot));
  stop_following(0, PointerGetDatum(slot));
}

}  // namespace streamfilter::pg
