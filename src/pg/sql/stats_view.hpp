// What views read from filters without a lock on their relations, because statistics must not wait
// for DDL. A slot stays unchanged while directory_lock is held; the next function needs it.
#pragma once

extern "C" {
#include "funcapi.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The slot with a filter's state, as the current transaction sees it, or without state the one with
// its statistics from before the start; nullptr if there is none.
FilterSlot* slot_with_counts(const FilterRelation* relation);

// Counts of a local filter, including this session's. Takes directory_lock.
RowCounts counts_to_show(const FilterRelation* relation);

// A row with only the fault; none without that column.
void put_fault(ReturnSetInfo* set, const Fault& fault);

}  // namespace streamfilter::pg
