// streamfilter_memory(): how much of the shared memory of filters is in use.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
}

#include "pg/shmem/filter_directory.hpp"

using namespace streamfilter::pg;

SF_FUNCTION(streamfilter_memory) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  Datum values[6] = {};
  bool isnull[6] = {true, true, true, true, true, true};
  if (shared_state != nullptr) {
    const MemoryUse use = memory_use();
    values[0] = Int64GetDatum(static_cast<int64>(use.total));
    values[1] = Int64GetDatum(static_cast<int64>(use.free));
    values[2] = Int64GetDatum(static_cast<int64>(use.largest_free));
    values[3] = Int64GetDatum(static_cast<int64>(use.dynamic));
    values[4] = Int32GetDatum(shared_state->slot_count);
    values[5] = Int32GetDatum(use.slots_in_use);
    memset(isnull, false, sizeof isnull);
  }
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
