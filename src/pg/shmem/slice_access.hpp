// Looks up and inserts a key in the slices of a filter in shared memory, under one slice lock at a
// time.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Was the key seen? Stops at the first probe that says no.
bool test_in_slices(const FilterSlot* slot, const Header* header, const Element& element);

// insert_new of a key. Until all its probes are set, others can find it absent: a session that must
// not also looks into the table of keys in flight.
void insert_new_in_slices(const FilterSlot* slot, Header* header, const Element& element);

// Counts an event that is about to be applied but is too late to be remembered.
inline void count_if_late(FilterSlot* slot, const Header* header, const Element& element) {
  if (unlikely(is_too_late(header, element)))
    pg_atomic_fetch_add_u64(slot->stats.counts[RowCount::late], 1);
}

}  // namespace streamfilter::pg
