// What is saved of a filter, in log and image.
#pragma once

#include "pg/shmem/filter_directory.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {

// Is anything saved of a filter, in log or image? Keeps nobody waiting.
bool is_anything_saved(Oid relation);

// Deletes the saved state of a filter in the current transaction, except rows of identity `except`
// if given. Returns the deleted bytes.
uint64 delete_saved_state(Oid relation, const int64* except = nullptr);

// Call after finish_save of a copy: gives rows logged since to the copy, which has their changes
// already. Returns their bytes.
uint64 move_log_rows(Relation log, const FilterSlot* from, FilterSlot* to);

}  // namespace streamfilter::pg
