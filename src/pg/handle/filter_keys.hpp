// The only entrances by which a key meets a filter, wherever the filter's state is. All need
// use_filter first. judge_key.hpp and remote_keys.hpp say what they raise, and what a transaction
// that adds keys can expect.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Prefetches the memory that keys need, for callers that know their next keys. Skips elements
// without has_key.
void prefetch_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                   int count);

// Was the key seen? Inserts it at commit, and counts the answer.
bool test_and_insert_key(FilterHandle* filter, const Element& element,
                         Outcome of_repeats = Outcome::discarded);
// The same after prefetch_keys.
bool test_and_insert_fetched_key(FilterHandle* filter, const Element& element,
                                 Outcome of_repeats = Outcome::discarded);

// The same for a batch of keys, in their order, for callers who have nothing to do between two of
// them: no use_filter is needed in between. Their memory is fetched ahead; where the state is on
// other servers, it is one message for all. Those without has_key are left out: seen[i] is false.
void test_and_insert_keys(FilterHandle* filter, const Element* elements, const bool* has_key,
                          int count, Outcome of_repeats, bool* seen);

// Is that a message to other servers, so that more keys at once are better?
bool asks_servers(FilterHandle* filter);

// The key is inserted, once the transaction commits, and nobody asks whether it was seen: a row
// that was judged has got it.
void remember_key(FilterHandle* filter, const Element& element);

// Can a key become this transaction's own before commit, whatever the filter says? Not if the state
// is on other servers or in a tree.
bool can_take_keys(const FilterHandle* filter);

// Takes the key of a wrongly judged row: the filter gets it at commit, and until then no other
// transaction adds it. Returns false at once if an unfinished transaction has added it. Needs
// can_take_keys().
bool take_key(FilterHandle* filter, const Element& element);

// remember_key() for a row that exists already, in a table that nobody else writes now. Of many
// keys, none takes a place among those in flight.
void learn_key(FilterHandle* filter, const Element& element);

// Was the key seen, by committed transactions or by this one?
bool test_key(FilterHandle* filter, const Element& element);

// Forgets a key at commit; false if it was not there. Only for kinds with FilterOps::erase. Also
// forgets other keys with an equal fingerprint.
bool erase_key(FilterHandle* filter, const Element& element);

// Empties this one filter at commit; the caller holds AccessExclusiveLock.
void reset_filter(FilterHandle* filter);

// The next, and copy_filter, work on state in this server only, and raise 0A000 for other filters.
// Adds what a value remembers, at commit, to the filter and its ancestors. Equal kind, parameters
// and seed are the caller's duty; raises 22023 if an ancestor has others. With `slice`, that one is
// all that lies behind the value's header.
void merge_into_filter(FilterHandle* filter, const Header* value, int64 slice = kAllSlices);

// The state as this transaction sees it, as a palloc'ed block.
Header* copy_filter(FilterHandle* filter);

// The header and one slice, likewise.
Header* copy_filter_slice(FilterHandle* filter, uint32 slice);

// Saves the state of a filter that is ready for use, in the current transaction, and deletes log
// rows that the image makes superfluous. `own_changes`: includes those of this transaction, which
// is about to commit. Raises 55006 if other transactions take too long to commit.
void save_filter(FilterHandle* filter, bool own_changes);

}  // namespace streamfilter::pg
