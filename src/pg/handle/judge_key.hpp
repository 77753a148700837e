// How a key meets a filter in this server's shared memory. A key that is added, forgotten or merged
// in belongs to the current transaction: others see it when that commits (transaction_changes.hpp).
// All of these need use_filter first, and but for one count nothing.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Gets the shared memory that a key needs on its way into the cache, all at once; test_and_insert
// comes to one cache line after the other.
void prefetch_local_key(const FilterHandle* filter, const Element& element);
// The same for several keys, with what the own transaction knows of them. Those without has_key are
// left out; nullptr: all have one.
void prefetch_local_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                         int count);

// Was the key seen? It is inserted now, once the transaction commits. Of a key that an unfinished
// transaction has added, option conflict decides; 'wait' may raise what waiting for a lock can
// raise: 40P01, 55P03, 57014. Raises 53200, 54000 as reserve_change does.
bool test_and_insert_local_key(FilterHandle* filter, const Element& element);
// The same for many keys, in their order, and counts the answers. Those without has_key are left
// out: seen[i] is false. Their memory is fetched ahead.
void test_and_insert_local_keys(FilterHandle* filter, const Element* elements, const bool* has_key,
                                int count, bool* seen);

// Takes the key as new, whatever the filter says of it; false if another transaction is adding it
// and option conflict gives it to that one. Raises what test_and_insert_local_key does.
bool reserve_local_key(FilterHandle* filter, const Element& element);
// The same without waiting for another transaction that may roll back: false, whatever option
// conflict says.
bool reserve_local_key_at_once(FilterHandle* filter, const Element& element);

// The key is inserted once the transaction commits, whichever other one adds it, too. Raises 53200,
// 54000.
void insert_local_key(FilterHandle* filter, const Element& element);

// For keys whose bits lie only in part in this filter (Koloniari et al. 2011,
// section 3.1), so that bits that are set do not tell whether the key was seen: reserves it as
// reserve_local_key does, and tells whether its bits are set then. `taken`: by another transaction.
enum class PartialReservation : uint8 { unset, set, taken };
PartialReservation reserve_partial_key(FilterHandle* filter, const Element& element);

// The same without reserving it, for a key that is reserved elsewhere. Were its bits set?
bool insert_partial_key(FilterHandle* filter, const Element& element);

// Was the key seen, by committed transactions or by this one?
bool test_local_key(const FilterHandle* filter, const Element& element);

// Forgets a key at commit; false if it was not there. Only for kinds with FilterOps::erase. A
// filter knows keys by their fingerprints: another key with the same one is forgotten with it.
bool erase_local_key(FilterHandle* filter, const Element& element);

// Forgets everything at commit; the caller holds AccessExclusiveLock.
void reset_local_filter(FilterHandle* filter);

// Adds what a value remembers, at commit; or one slice, which is all that lies behind its header
// then. Equal kind, parameters and seed are the caller's duty.
void merge_into_local_filter(FilterHandle* filter, const Header* value, int64 slice);

// Puts the state of a value, of the same parameters and seed, in place of what the filter has, at
// commit. Nobody else uses the filter meanwhile.
void replace_local_filter(FilterHandle* filter, const Header* value);

// The state as this transaction sees it, a palloc'ed block of the filter's memory.
Header* copy_local_filter(FilterHandle* filter);

// The header and one slice, likewise.
Header* copy_local_slice(FilterHandle* filter, uint32 slice);

}  // namespace streamfilter::pg
