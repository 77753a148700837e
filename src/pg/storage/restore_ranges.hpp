// A filter whose rows come while it is restored: range by range of its slices (missing_ranges.hpp),
// from the image and what the log has for them.
#pragma once

#include "pg/shmem/missing_ranges.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/storage/state_reader.hpp"

namespace streamfilter::pg {

// The image lies in order, a key in one slice; and nothing but them is needed. The log was read.
bool can_read_by_ranges(const StateReading& reading);

// Opens the slot and restores it. An error leaves it open, and to the next one who needs more.
void restore_by_ranges(StateReading* reading, int64 first_row, const Opening* opening);

// Before a key is looked up, added or forgotten: waits until its slice is there, or sees to it.
void await_slices(FilterSlot* slot, const FilterRelation* relation, uint64 ranges);
inline void await_all_slices(FilterSlot* slot, const FilterRelation* relation) {
  if (unlikely(!is_whole(slot))) await_slices(slot, relation, PG_UINT64_MAX);
}
inline void await_slice(FilterSlot* slot, const FilterRelation* relation, uint64 hash) {
  if (likely(is_whole(slot))) return;
  const Parameters& parameters = block_of(slot)->parameters;
  await_slices(slot, relation, UINT64CONST(1) << range_of(parameters, slice_of(parameters, hash)));
}

void warn_damaged(const FilterRelation* relation, const char* what, const char* detail);

}  // namespace streamfilter::pg
