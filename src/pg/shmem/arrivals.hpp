// Transactions whose changes are on their way into filters: marked from before they write to the
// log until all of it is there, one place per session. A session that must not miss what is
// already visible waits for those that have committed. What does not commute happens in the order
// of the marks: it is logged and brought in only after all before it.
#pragma once

#include "core/base/hash.hpp"
#include "pg/server/commit_wait.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Filters as a set of bits. Several filters share a bit, so sessions may wait for more than they
// need.
inline uint64 arrival_bit(const FilterSlot* slot) {
  return uint64{1} << ((slot - shared_state->slots) % 64);
}

// What a transaction changes. Keys are sets of bits as well.
struct ArrivalMark {
  uint64 filters;
  uint64 keys;    // added or erased
  uint64 erased;  // of these; all keys where a filter is reset or a value merged in
};
inline uint64 arrival_bit(uint64 hash) { return uint64{1} << ((hash * kGoldenRatio) >> 58); }

// Marks the transaction of this session; takes the mark back, if there is one. Neither raises.
void mark_arriving(FullTransactionId transaction, const ArrivalMark& mark);
void unmark_arriving();
bool is_marked_arriving();

// Waits until no transaction is marked that was so before this session's and does not commute with
// it. One that is prepared keeps its locks, so its mark is waited for. Raises 55P03, 57014.
void wait_for_earlier(const CommitWait& wait, const char* context);

// The next transaction of another session that is marked for the filter, from place `at` on, which
// moves behind it; invalid: there is no more.
FullTransactionId next_arriving(const FilterSlot* slot, uint32* at);

// For shared memory.
void request_arrivals();
void start_arrivals();

}  // namespace streamfilter::pg
