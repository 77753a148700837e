// What views read of filters without a lock on their relations: statistics must not wait for DDL.
// While directory_lock is held, a slot stays what it is; the two below need it.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The slot with the state of a filter as the current transaction sees it; nullptr if there is none.
FilterSlot* slot_to_show(const FilterRelation* relation);

// Sums over its slices, each of which is locked in turn.
Totals read_totals(const FilterSlot* slot, const Parameters& parameters);

}  // namespace streamfilter::pg
