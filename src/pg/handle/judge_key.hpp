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

// Prefetches the shared memory that keys need, and the transaction's own changes: test_and_insert
// would reach one cache line after the other. Skips elements without has_key; nullptr: all have
// keys.
void prefetch_local_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                         int count);

// Was the key seen? Inserts it at commit. For a key that an unfinished transaction has added,
// option conflict decides; 'wait' may raise what waiting for a lock raises: 40P01, 55P03, 57014.
// Raises 53200, 54000 as reserve_change does.
bool test_and_insert_local_key(FilterHandle* filter, const Element& element);
// The same after prefetch_local_keys.
bool test_and_insert_fetched_local_key(FilterHandle* filter, const Element& element);
// The same for many keys, in order; counts the answers. Elements without has_key get seen[i] =
// false. Prefetches.
void test_and_insert_local_keys(FilterHandle* filter, const Element* elements, const bool* has_key,
                                int count, Outcome of_repeats, bool* seen);

// Takes the key as new, whatever the filter says; false if another transaction is adding it and
// option conflict favors that one. Raises what test_and_insert_local_key does.
// With `at_once` it does not wait for a transaction that may roll back: then false, whatever option
// conflict says.
bool reserve_local_key(FilterHandle* filter, const Element& element, bool at_once = false);

// Inserts the key at commit, even if another transaction adds it, too. Raises 53200, 54000.
void insert_local_key(FilterHandle* filter, const Element& element);

// For keys whose bits lie only in part in this filter (Koloniari et al. 2011,
// section 3.1), so that bits that are set do not tell whether the key was seen: reserves it as
// reserve_local_key does, and tells whether its bits are set then. `taken`: by another transaction.
enum class PartialReservation : uint8 { unset, set, taken };
PartialReservation reserve_partial_key(FilterHandle* filter, const Element& element);

// The same without a reservation, for a key that is reserved elsewhere. Were its bits set?
bool insert_partial_key(FilterHandle* filter, const Element& element);

// Was the key seen, by committed transactions or by this one?
bool test_local_key(const FilterHandle* filter, const Element& element);

// Forgets a key at commit; false if it was not there. Only for kinds with FilterOps::erase. Also
// forgets other keys with an equal fingerprint.
bool erase_local_key(FilterHandle* filter, const Element& element);

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
