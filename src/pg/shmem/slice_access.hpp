// A key in the slices of a filter in shared memory, each under its own lock, one at a time.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Was the key seen? Stops at the first probe that says no.
bool test_in_slices(const FilterSlot* slot, const Header* header, const Element& element);

// insert_new of a key. While its probes are being set, others can find it absent: a session that
// must not has to meet it in the table of keys in flight.
void insert_new_in_slices(const FilterSlot* slot, Header* header, const Element& element);

// Counts an event that is about to be brought in, and comes too late to be remembered.
inline void count_if_late(FilterSlot* slot, const Header* header, const Element& element) {
  if (unlikely(is_too_late(header, element)))
    pg_atomic_fetch_add_u64(slot->stats.counts[RowCount::late], 1);
}

}  // namespace streamfilter::pg
