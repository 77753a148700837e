// On a standby: brings a filter up to date with WAL replayed since the last look.
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
#include "pg/server/lock_wait.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/storage/persistence.hpp"
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

bool comes_before(TransactionId one, TransactionId other) {
  return TransactionIdPrecedes(one, other);
}

// Stores ascending ids. If older ones make too many ranges, count stays -1.
void remember(const TransactionId* ids, uint32 count, SavedState::RunningXids* ran) {
  uint32 made = 0;
  memset(ran->latest, 0, sizeof ran->latest);
  for (uint32 i = 0; i < count; ++i) {
    const uint32 age = ran->xmax - 1 - ids[i];
    if (age < SavedState::RunningXids::kLatest) {
      ran->latest[age / 64] |= uint64{1} << age % 64;
      continue;
    }
    TransactionId next = InvalidTransactionId;
    if (made > 0) {
      next = ran->ranges[made - 1].last;
      TransactionIdAdvance(next);
    }
    if (made > 0 && next == ids[i]) {
      ran->ranges[made - 1].last = ids[i];
      continue;
    }
    if (made == SavedState::RunningXids::kRanges) return;
    ran->ranges[made++] = {ids[i], ids[i]};
  }
  ran->count = static_cast<int>(made);
}

void stop_following(int, Datum slot) {
  const NoRaise marked;
  pg_atomic_write_u32(&reinterpret_cast<FilterSlot*>(DatumGetPointer(slot))->saved.following, 0);
  ConditionVariableBroadcast(&shared_state->built);
}

}  // namespace

// An overflowed snapshot lacks subtransactions. None of them has written to the log: a transaction
// does so at commit, under its own id, which is never left out.
void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed) {
  SavedState* saved = &slot->saved;
  SavedState::RunningXids* ran = &saved->ran;
  ran->xmin = snapshot->xmin;
  ran->xmax = snapshot->xmax;
  ran->count = -1;
  if (snapshot->takenDuringRecovery) {
    const Size bytes = sizeof(TransactionId) * static_cast<Size>(snapshot->subxcnt);
    auto* ids = static_cast<TransactionId*>(palloc(bytes + 1));
    memcpy(ids, snapshot->subxip, bytes);
    std::sort(ids, ids + snapshot->subxcnt, comes_before);
    remember(ids, static_cast<uint32>(snapshot->subxcnt), ran);
    pfree(ids);
  }
  saved->replayed = replayed;
}

bool is_news(const SavedState* saved, TransactionId xid) {
  const SavedState::RunningXids& ran = saved->ran;
  if (comes_before(xid, ran.xmin)) return false;
  if (!comes_before(xid, ran.xmax)) return true;
  const uint32 age = ran.xmax - 1 - xid;
  if (age < SavedState::RunningXids::kLatest) return ran.latest[age / 64] >> age % 64 & 1;
  const SavedState::RunningXids::Range* end = ran.ranges + ran.count;
  const SavedState::RunningXids::Range* range = std::partition_point(
      ran.ranges, end, [xid](const auto& each) { return comes_before(each.last, xid); });
  return range != end && !comes_before(xid, range->first);
}

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
