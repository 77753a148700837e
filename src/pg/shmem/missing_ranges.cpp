#include "pg/server/postgres.hpp"

extern "C" {
#include "port/pg_bitutils.h"
}

#include "pg/server/lock_wait.hpp"
#include "pg/shmem/missing_ranges.hpp"

namespace streamfilter::pg {
namespace {

uint64 bit_of(uint32 range) { return UINT64CONST(1) << range; }

bool take_over(FilterSlot* slot) {
  uint32 nobody = 0;
  return pg_atomic_compare_exchange_u32(&slot->restorer, &nobody, static_cast<uint32>(MyProcPid));
}

}  // namespace

void begin_ranges(FilterSlot* slot, uint32 count) {
  pg_atomic_write_u64(&slot->wanted, 0);
  pg_atomic_write_u64(&slot->missing, ~UINT64CONST(0) >> (kMostRanges - count));
  pg_atomic_write_u32(&slot->restorer, static_cast<uint32>(MyProcPid));
}

bool is_any_wanted(FilterSlot* slot) {
  return (pg_atomic_read_u64(&slot->wanted) & pg_atomic_read_u64(&slot->missing)) != 0;
}

uint32 next_range(FilterSlot* slot) {
  const uint64 missing = pg_atomic_read_u64(&slot->missing),
               wanted = pg_atomic_read_u64(&slot->wanted) & missing;
  return static_cast<uint32>(pg_rightmost_one_pos64(wanted != 0 ? wanted : missing));
}

void end_range(FilterSlot* slot, uint32 range) {
  pg_atomic_fetch_and_u64(&slot->missing, ~bit_of(range));
  ConditionVariableBroadcast(&shared_state->built);
}

void miss_ranges(FilterSlot* slot, uint64 ranges) {
  pg_atomic_fetch_or_u64(&slot->missing, ranges);
}

void end_restoring(FilterSlot* slot) {
  // An error may call this twice, and somebody else have taken over in between.
  auto own = static_cast<uint32>(MyProcPid);
  if (pg_atomic_compare_exchange_u32(&slot->restorer, &own, 0))
    ConditionVariableBroadcast(&shared_state->built);
}

bool wait_for_ranges(FilterSlot* slot, uint64 ranges) {
  bool restored = true;
  LockWait wait(slot->relation);
  pg_atomic_fetch_or_u64(&slot->wanted, ranges);
  ConditionVariablePrepareToSleep(&shared_state->built);
  while ((pg_atomic_read_u64(&slot->missing) & ranges) != 0) {
    if (take_over(slot)) {
      restored = false;
      break;
    }
    wait.sleep(&shared_state->built);
  }
  ConditionVariableCancelSleep();
  return restored;
}

}  // namespace streamfilter::pg
