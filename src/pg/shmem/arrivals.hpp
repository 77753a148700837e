// Marks of transactions whose changes are arriving in filters: set before they write to the log,
// cleared when all changes are applied; one place per session. A session that must not miss visible
// changes waits for marks of committed transactions. Changes that do not commute are logged and
// applied in the order of the marks.
#pragma once

#include "pg/server/lock_wait.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// The bit of a filter in a set. Several filters share a bit, so sessions may wait for more than
// they need.
inline uint64 arrival_bit(const FilterSlot* slot) {
  return uint64{1} << ((slot - shared_state->slots) % 64);
}

// What a transaction changes. Keys are sets of bits, too.
struct ArrivalMark {
  uint64 filters;
  uint64 keys;    // added or erased
  uint64 erased;  // erased keys; all bits if a filter is reset or a value merged
};
inline uint64 arrival_bit(uint64 hash) { return uint64{1} << ((hash * kGoldenRatio) >> 58); }

// Marks this session's transaction, or removes the mark if there is one. Neither raises.
void mark_arriving(FullTransactionId transaction, const ArrivalMark& mark);
void unmark_arriving();
bool is_marked_arriving();

// Waits until no transaction is marked that was marked before this session's and does not commute
// with it. Waits for prepared ones, too, which keep their locks. Raises 55P03, 57014.
void wait_for_earlier(const CommitWait& wait, const char* context);

// The next other session's transaction that is marked for the filter, from place `at` on, which
// moves past it; invalid if there is none.
FullTransactionId next_arriving(const FilterSlot* slot, uint32* at);

// For shared memory.
void request_arrivals();
void start_arrivals();

}  // namespace streamfilter::pg
