// A filter that is used while it is restored: its slices come in up to 64 ranges, those first that
// a row waits for. Nobody but the restorer touches a slice that is missing.
#pragma once

#include "core/filter/resize.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

inline uint32 count_ranges(const Parameters& parameters) { return Min(parameters.slices, 64u); }

inline uint32 range_of(const Parameters& parameters, uint32 slice) {
  return static_cast<uint32>(uint64{slice} * count_ranges(parameters) / parameters.slices);
}

SliceRange slices_of_range(const Parameters& parameters, uint32 range);

inline bool is_whole(const FilterSlot* slot) {
  return pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&slot->missing)) == 0;
}

// Before others see the slot: all is missing, and this process restores it.
void begin_ranges(FilterSlot* slot);

// Returns a range that a session waits for, else any. Some range must be missing.
uint32 next_range(FilterSlot* slot);

// Marks the range as restored.
void end_range(FilterSlot* slot, uint32 range);

// This process restores it no longer, and may have left ranges out. Cannot fail.
void end_restoring(FilterSlot* slot);

// Waits until the ranges of these bits are there. False: nobody restores the filter any more, and
// this process is to go on with it. Raises what waiting can.
bool wait_for_ranges(FilterSlot* slot, uint64 ranges);

}  // namespace streamfilter::pg
