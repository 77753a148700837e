#include "pg/server/postgres.hpp"

extern "C" {
#include "port/pg_bitutils.h"
}

#include "pg/server/wait_events.hpp"
#include "pg/shmem/missing_ranges.hpp"

namespace streamfilter::pg {
namespace {

uint64 bit_of(uint32 range) { return UINT64CONST(1) << range; }

bool take_over(FilterSlot* slot) {
  uint32 nobody = 0;
  return pg_atomic_compare_exchange_u32(&slot->restorer, &nobody, static_cast<uint32>(MyProcPid));
}

}  // namespace

SliceRange slices_of_range(const Parameters& parameters, uint32 range) {
  const uint64 ranges = count_ranges(parameters);
  const auto first = [&](uint64 number) {
    return static_cast<uint32>((number * parameters.slices + ranges - 1) / ranges);
  };
  return {first(range), first(uint64{range} + 1)};
}

void begin_ranges(FilterSlot* slot) {
  const uint32 ranges = count_ranges(block_of(slot)->parameters);
  pg_atomic_write_u64(&slot->wanted, 0);
  pg_atomic_write_u64(&slot->missing, ~UINT64CONST(0) >> (64 - ranges));
  pg_atomic_write_u32(&slot->restorer, static_cast<uint32>(MyProcPid));
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

void end_restoring(FilterSlot* slot) {
  pg_atomic_write_u32(&slot->restorer, 0);
  ConditionVariableBroadcast(&shared_state->built);
}

bool wait_for_ranges(FilterSlot* slot, uint64 ranges) {
  bool restored = true;
  pg_atomic_fetch_or_u64(&slot->wanted, ranges);
  ConditionVariablePrepareToSleep(&shared_state->built);
  while ((pg_atomic_read_u64(&slot->missing) & ranges) != 0) {
    if (take_over(slot)) {
      restored = false;
      break;
    }
    ConditionVariableSleep(&shared_state->built, wait_event(Wait::load));
  }
  ConditionVariableCancelSleep();
  return restored;
}

}  // namespace streamfilter::pg
