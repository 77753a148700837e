// How a key meets a filter in this server's shared memory. A key that is added, forgotten or merged in
// belongs to the current transaction: others see it when that commits (pending.hpp). All of these need
// use_filter first, and count nothing.
#pragma once

#include "streamfilter/pg/named_filter.hpp"

namespace streamfilter::pg {

// What the claim of a key meets: its bits are set, or not, or another transaction has added it and option
// conflict calls that a repeat.
enum class Claim : uint8 { unset, set, taken };

// Gets the memory that judging a key needs on its way into the cache, for callers that know their
// next keys.
void prefetch_local_key(const NamedFilter* filter, const Element& element);

// Was the key seen? It is remembered now, once the transaction commits. A key that an unfinished
// transaction has added is judged by option conflict; 'wait' may raise what waiting for a lock can
// raise: 40P01, 55P03, 57014. Raises 53200, 54000 as reserve_pending does.
bool remember_local_key(NamedFilter* filter, const Element& element);

// For keys of which this filter has a part of the bits only (distributed-filtering.txt, section 3.1), so
// that bits that are set do not tell whether the key was seen. Claims the key in any case: until this
// transaction has ended, others judge it by option conflict. Errors as of remember_local_key.
Claim claim_local_key(NamedFilter* filter, const Element& element);

// The same without the claim, for a key that is claimed elsewhere. Were its bits set?
bool put_local_key(NamedFilter* filter, const Element& element);

// Was the key seen, by committed transactions or by this one?
bool test_local_key(const NamedFilter* filter, const Element& element);

// Forgets a key at commit; false if it was not there. Only for kinds with FilterOps::erase. A filter
// knows keys by their fingerprints: another key with the same one is forgotten with it.
bool erase_local_key(NamedFilter* filter, const Element& element);

// Forgets everything at commit; the caller holds AccessExclusiveLock.
void reset_local_filter(NamedFilter* filter);

// Adds what a value remembers, at commit. Equal kind, parameters and seed are the caller's duty.
void merge_into_local_filter(NamedFilter* filter, const Header* value);

// The state as this transaction sees it, a palloc'ed block of the filter's memory.
Header* copy_local_filter(NamedFilter* filter);

}  // namespace streamfilter::pg
