// A filter that is used while it is restored: it comes in up to 64 ranges, those first that a row
// waits for. Nobody but the restorer touches what is missing.
#pragma once

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

constexpr uint32 kMostRanges = 64;

inline bool is_whole(const FilterSlot* slot) {
  return pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&slot->missing)) == 0;
}

// Before others see the slot: all is missing, and this process restores it.
void begin_ranges(FilterSlot* slot, uint32 count);

// Does a session wait for a range that is missing?
bool is_any_wanted(FilterSlot* slot);

// Returns a range that a session waits for, else any. Some range must be missing.
uint32 next_range(FilterSlot* slot);

// Marks the range as restored.
void end_range(FilterSlot* slot, uint32 range);

// These are missing again.
void miss_ranges(FilterSlot* slot, uint64 ranges);

// This process restores it no longer, and may have left ranges out. Cannot fail.
void end_restoring(FilterSlot* slot);

// Waits until the ranges of these bits are there. False: nobody restores the filter any more, and
// this process is to go on with it. Raises what waiting can.
bool wait_for_ranges(FilterSlot* slot, uint64 ranges);

}  // namespace streamfilter::pg
