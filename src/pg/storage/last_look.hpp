// What a standby saw when it last looked at a filter's log: later it reads what is news.
#pragma once

extern "C" {
#include "utils/snapshot.h"
}

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Remembers the snapshot of the last look, and up to which WAL position it was replayed.
void remember_snapshot(FilterSlot* slot, Snapshot snapshot, XLogRecPtr replayed);
// Was the transaction running at that look, or did it begin later?
bool is_news(const SavedState* saved, TransactionId xid);

}  // namespace streamfilter::pg
