// What views read of filters without a lock on their relations: statistics must not wait for DDL.
// While directory_lock is held, a slot stays what it is; the two below need it.
#pragma once

extern "C" {
#include "funcapi.h"
}

#include "core/filter/filter.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The slot with the state of a filter as the current transaction sees it; nullptr if there is none.
FilterSlot* slot_to_show(const FilterRelation* relation);

// The same, or where there is none yet, the one that has its statistics from before the start.
FilterSlot* slot_with_counts(const FilterRelation* relation);

// What a filter that is here has counted, this session's included. Takes directory_lock.
RowCounts counts_to_show(const FilterRelation* relation);

// The views of filters end with a column `error`. Before the extension is updated to the version of
// this library they do not.
bool has_error_column(TupleDesc descriptor);

// A row of nothing but the fault; none without that column.
void put_fault(ReturnSetInfo* set, const Fault& fault);

}  // namespace streamfilter::pg
