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

}  // namespace streamfilter::pg
