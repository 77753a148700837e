// On a standby: what has been replayed since the filter was last looked at.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "storage/ipc.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
}

#include <algorithm>

#include "core/format/layout.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/storage/state_reader.hpp"

namespace streamfilter::pg {
namespace {

// When was the current image saved? 0: there is none.
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

// Plays what has become visible since the last look. False: everything must be read again.
bool play_news(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  // Before there was a header to be found, the seed was not known.
  if (saved->seen_count < 0 || pg_atomic_read_u32(&saved->has_header) == 0) return false;
  const bool standby = RecoveryInProgress();
  const XLogRecPtr replayed = standby ? GetXLogReplayRecPtr(nullptr) : InvalidXLogRecPtr;
  if (standby && replayed == saved->replayed) return true;
  StateReading reading;
  if (!open_state_tables(relation->relid, AccessShareLock, AccessShareLock, &reading.tables))
    return true;
  Progress progress(Command::restore, relation->relid,
                    psprintf("following filter \"%s\"", relation->name));
  reading.slot = slot;
  reading.relation = relation;
  reading.progress = &progress;
  RowSort sort(reading.tables.log);
  reading.sort = &sort;
  reading.seen = saved;
  reading.next_number = pg_atomic_read_u64(&saved->next_number);
  bool complete = try_to_read(read_prepared, &reading) == nullptr;
  reading.snapshot = register_latest_snapshot();
  complete = complete &&
             image_time(reading.tables.images, relation->relid, reading.snapshot) == saved->image &&
             try_to_read(read_log, &reading) == nullptr && !reading.unsure;
  if (complete) {
    Header* block = block_of(slot);
    saved->seen_count = -1;  // an error in between: all must be read again
    replay_rows(reading, block, PG_INT64_MIN, saved->identity);
    pg_atomic_write_u64(&saved->next_number, reading.next_number);
    pg_atomic_fetch_add_u64(&saved->log_bytes, static_cast<int64>(reading.log.bytes));
    remember_snapshot(slot, reading.snapshot, replayed);
  }
  sort.end();
  UnregisterSnapshot(reading.snapshot);
  close_state_tables(reading.tables);
  progress.end();
  return complete;
}

bool comes_before(TransactionId one, TransactionId other) {
  return TransactionIdPrecedes(one, other);
}

// Of ascending ids, as ranges. -1: they do not fit.
int make_ranges(const TransactionId* ids, int count, SavedState::XidRange* ranges) {
  int made = 0;
  for (int i = 0; i < count; ++i) {
    TransactionId next = InvalidTransactionId;
    if (made > 0) {
      next = ranges[made - 1].last;
      TransactionIdAdvance(next);
    }
    if (made > 0 && next == ids[i]) {
      ranges[made - 1].last = ids[i];
      continue;
    }
    if (made == SavedState::kSeen) return -1;
    ranges[made++] = {ids[i], ids[i]};
  }
  return made;
}

void stop_following(int, Datum slot) {
  const NoRaise marked;
  pg_atomic_write_u32(&reinterpret_cast<FilterSlot*>(DatumGetPointer(slot))->saved.following, 0);
  ConditionVariableBroadcast(&shared_state->built);
}

}  // namespace

// Where the snapshot has overflowed, subtransactions are missing from it. None has written to the
// log: a transaction does that when it commits, by its own id, and those are never left out.
void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed) {
  SavedState* saved = &slot->saved;
  saved->seen_xmin = snapshot->xmin;
  saved->seen_xmax = snapshot->xmax;
  saved->seen_count = -1;
  if (snapshot->takenDuringRecovery) {
    const Size bytes = sizeof(TransactionId) * static_cast<Size>(snapshot->subxcnt);
    auto* ids = static_cast<TransactionId*>(palloc(bytes + 1));
    memcpy(ids, snapshot->subxip, bytes);
    std::sort(ids, ids + snapshot->subxcnt, comes_before);
    saved->seen_count = make_ranges(ids, static_cast<int>(snapshot->subxcnt), saved->seen);
    pfree(ids);
  }
  saved->replayed = replayed;
}

bool is_news(const SavedState* saved, TransactionId xid) {
  if (comes_before(xid, saved->seen_xmin)) return false;
  if (!comes_before(xid, saved->seen_xmax)) return true;
  const SavedState::XidRange* end = saved->seen + saved->seen_count;
  const SavedState::XidRange* range = std::partition_point(
      saved->seen, end, [xid](const auto& each) { return comes_before(each.last, xid); });
  return range != end && !comes_before(xid, range->first);
}

void follow_log(FilterSlot* slot, const FilterRelation* relation) {
  SavedState* saved = &slot->saved;
  // One at a time; the others wait until the filter is as new as they need it.
  ConditionVariablePrepareToSleep(&shared_state->built);
  for (;;) {
    uint32 idle = 0;
    if (pg_atomic_compare_exchange_u32(&saved->following, &idle, 1)) break;
    ConditionVariableSleep(&shared_state->built, wait_event(Wait::load));
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
