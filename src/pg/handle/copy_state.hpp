// The state of a filter, brought into another size slice by slice while others change it.
#pragma once

#include "pg/server/progress.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The filter is what it was, so that its state can go on being copied. Raises 40001 if it was
// altered, dropped, emptied or merged into, after a lock on it was taken.
[[noreturn]] void raise_changed(const char* name, const char* what);
void check_unchanged(const FilterSlot* former, uint64 generation, const char* name);

// Fills the copy, which begin_copy has begun, from the former slot. Of a lock that writers need no
// more is done than to read a slice, or to apply a few keys. Takes the filter's lock for each
// slice anew. Raises 40001 as check_unchanged, 0A000 if what is there cannot be kept, 54000 if keys
// come faster than a slice is copied.
void copy_state(FilterSlot* copy, FilterSlot* former, uint64 generation, const char* name,
                Progress* progress);

// So many bytes for notes go with a copy.
uint64 note_bytes(const Parameters& parameters);

// The slices of a filter must be no larger: others wait while one is read.
constexpr uint64 kLargestSlice = UINT64CONST(1) << 30;

}  // namespace streamfilter::pg
