#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "utils/snapmgr.h"
}

#include <algorithm>

#include "pg/storage/last_look.hpp"

namespace streamfilter::pg {
namespace {

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

}  // namespace streamfilter::pg
