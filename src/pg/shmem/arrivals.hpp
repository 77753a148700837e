// Transactions whose changes are on their way into filters: marked from just before they commit
// until all of it is there, one place per session. Whoever must not miss what is already visible
// waits for those that have committed.
#pragma once

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Filters as a set of bits, of which some share one: more are waited for than need be.
inline uint64 arrival_bit(const FilterSlot* slot) {
  return uint64{1} << ((slot - shared_state->slots) % 64);
}

// Marks the transaction of this session, which changes these filters; takes the mark back, if there
// is one. Neither raises.
void mark_arriving(FullTransactionId transaction, uint64 filters);
void unmark_arriving();

// The next transaction of another session that is marked for the filter, from place `at` on, which
// moves behind it; invalid: there is no more.
FullTransactionId next_arriving(const FilterSlot* slot, uint32* at);

// For shared memory.
void request_arrivals();
void start_arrivals();

}  // namespace streamfilter::pg
