// Copies a filter's state into another size, slice by slice, while other sessions change it.
#pragma once

#include "pg/server/progress.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Raises 40001 if the filter was altered, dropped, emptied or merged into since a lock on it was
// taken, so that copying cannot go on.
[[noreturn]] void raise_changed(const char* name, const char* what);
void check_unchanged(const FilterSlot* former, uint64 generation, const char* name);

// Fills the copy, which begin_copy has started, from the former slot. Takes the filter's lock anew
// for each slice, only to read the slice or to apply a few keys, so that writers hardly wait.
// Raises 40001 as check_unchanged, 0A000 if the state cannot be kept, 54000 if keys come faster
// than a slice is copied.
void copy_state(FilterSlot* copy, FilterSlot* former, uint64 generation, const char* name,
                Progress* progress);

// Bytes for notes that a copy needs.
uint64 note_bytes(const Parameters& parameters);

// Limit for slices: other sessions wait while one is read.
constexpr uint64 kLargestSlice = UINT64CONST(1) << 30;

}  // namespace streamfilter::pg
