// The only entrances by which a key meets a filter, wherever the filter's state is. All need
// use_filter first. judge_key.hpp and remote_keys.hpp say what they raise, and what a transaction
// that adds keys can expect.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Prefetches the memory that keys need, for callers that know their next keys. Skips elements
// without has_key.
inline void prefetch_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                          int count) {
  filter->node->prefetch_all(filter, elements, has_key, count);
}

// Gives the filter a key. Counts the answer of insert, insert_fetched and test.
inline Verdict judge_key(FilterHandle* filter, const Element& element, Intent intent,
                         Outcome of_repeats = Outcome::discarded) {
  const Verdict verdict = filter->keys->judge(filter, element, intent);
  if (intent <= Intent::insert_fetched)
    count_answer(filter, verdict != Verdict::fresh, of_repeats);
  else if (intent == Intent::test)
    count_tested(filter);
  return verdict;
}

// Inserts a batch of keys, in their order, for callers who have nothing to do between two of them:
// no use_filter is needed in between. Their memory is fetched ahead; where the state is on other
// servers, it is one message for all. Those without has_key are left out: seen[i] is false.
inline void judge_keys(FilterHandle* filter, const Element* elements, const bool* has_key,
                       int count, Outcome of_repeats, bool* seen) {
  filter->keys->judge_all(filter, elements, has_key, count, of_repeats, seen);
}

// Is that a message to other servers, so that more keys at once are better?
bool asks_servers(FilterHandle* filter);

// Can a key become this transaction's own before commit, whatever the filter says? Not if the state
// is on other servers or in a tree.
bool can_take_keys(const FilterHandle* filter);

// Empties this one filter at commit; the caller holds AccessExclusiveLock.
inline void reset_filter(FilterHandle* filter) { filter->node->reset(filter); }

// The next, and copy_filter, work on state in this server only, and raise 0A000 for other filters.
// Adds what a value remembers, at commit, to the filter and its ancestors. Equal kind, parameters
// and seed are the caller's duty; raises 22023 if an ancestor has others. With `slice`, that one is
// all that lies behind the value's header.
void merge_into_filter(FilterHandle* filter, const Header* value, int64 slice = kAllSlices);

// The state as this transaction sees it, as a palloc'ed block.
Header* copy_filter(FilterHandle* filter);

// The header and one slice, likewise.
Header* copy_filter_slice(FilterHandle* filter, uint32 slice);

// A filter that is ready for use is saved when the current transaction commits, once however often
// this was called.
void save_at_commit(FilterHandle* filter);

}  // namespace streamfilter::pg
