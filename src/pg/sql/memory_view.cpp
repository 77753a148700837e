// streamfilter_memory(): how much of the shared memory of filters is in use.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
}

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {
namespace {

int slots_in_use() {
  int count = 0;
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  for (int i = 0; i < shared_state->slot_count; ++i)
    count += shared_state->slots[i].state != SlotState::free;
  LWLockRelease(shared_state->directory_lock);
  return count;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

SF_FUNCTION(streamfilter_memory) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  Datum values[5] = {};
  bool isnull[5] = {true, true, true, true, true};
  if (shared_state != nullptr) {
    uint64 largest, total;
    free_space(&largest, &total);
    values[0] = Int64GetDatum(static_cast<int64>(shared_state->arena_size));
    values[1] = Int64GetDatum(static_cast<int64>(total));
    values[2] = Int64GetDatum(static_cast<int64>(largest));
    values[3] = Int32GetDatum(shared_state->slot_count);
    values[4] = Int32GetDatum(slots_in_use());
    memset(isnull, false, sizeof isnull);
  }
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
