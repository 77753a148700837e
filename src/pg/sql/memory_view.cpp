// streamfilter_memory(): use of the filters' shared memory.
#include "pg/server/postgres.hpp"

#include "pg/server/named_row.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/filter_directory.hpp"

using namespace streamfilter::pg;

SF_FUNCTION(streamfilter_memory) {
  NamedRow row(fcinfo);
  if (shared_state != nullptr) {
    const MemoryUse use = memory_use();
    row.put_count("total", use.total);
    row.put_count("free", use.free);
    row.put_count("largest_free", use.largest_free);
    row.put_count("dynamic", use.dynamic);
    row.put("slots", Int32GetDatum(max_filters));
    row.put("slots_in_use", Int32GetDatum(use.slots_in_use));
  }
  PG_RETURN_DATUM(row.datum());
}
