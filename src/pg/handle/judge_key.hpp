// How a key meets a filter in this server's shared memory. An added, forgotten or merged key
// belongs to the current transaction until commit (transaction_changes.hpp). All functions need
// use_filter first, and count nothing except where stated.
#pragma once

#include "pg/handle/filter_handle.hpp"
#include "pg/storage/restore_ranges.hpp"

namespace streamfilter::pg {

// Waits until what the filter knows of the key is restored.
inline void await_key(const FilterHandle* filter, const Element& element) {
  if (unlikely(!is_whole(filter->slot)) && !has_truncated(filter))
    await_slice(filter->slot, filter->relation, element.hash);
}

// Prefetches the shared memory that keys need, and the transaction's own changes: judging
// would reach one cache line after the other. Skips elements without has_key; nullptr: all have
// keys.
void prefetch_local_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                         int count);

// Insertion may raise 53200, 54000 as reserve_change does, and what waiting for a lock raises where
// option conflict is 'wait': 40P01, 55P03, 57014. Intent::put does not wait for others.
Verdict judge_local_key(FilterHandle* filter, const Element& element, Intent intent);
// Inserts many keys, in order; counts the answers. Elements without has_key get seen[i] = false.
// Prefetches.
void judge_local_keys(FilterHandle* filter, const Element* elements, const bool* has_key, int count,
                      Outcome of_repeats, bool* seen);

// Empties the filter at commit; the caller holds AccessExclusiveLock.
void reset_local_filter(FilterHandle* filter);

// Adds a value at commit, or one slice, which then is all that lies behind the header. The caller
// ensures equal kind, parameters and seed.
void merge_into_local_filter(FilterHandle* filter, const Header* value, int64 slice);

// The state as this transaction sees it, as a palloc'ed block.
Header* copy_local_filter(FilterHandle* filter);

// The header and one slice, likewise.
Header* copy_local_slice(FilterHandle* filter, uint32 slice);

}  // namespace streamfilter::pg
