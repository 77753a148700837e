// The tables of row_counts.hpp in SQL.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/timestamp.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/sql/named_row.hpp"
#include "pg/sql/stats_view.hpp"

namespace streamfilter::pg {
namespace {

// As Prometheus names metrics: the unit comes last.
const char* metric_of(const char* prefix, const char* name) {
  constexpr char kBytes[] = "bytes_";
  if (strncmp(name, kBytes, strlen(kBytes)) != 0) return psprintf("%s%s_total", prefix, name);
  return psprintf("%s%s_bytes_total", prefix, name + strlen(kBytes));
}

template <int n>
void put_table(ReturnSetInfo* set, const char* counts_of, const char* prefix,
               const CounterInfo (&table)[n]) {
  for (const CounterInfo& counter : table) {
    NamedRow row(set->setDesc);
    row.put("counts_of", counts_of);
    row.put("name", counter.name);
    row.put("metric", metric_of(prefix, counter.name));
    row.put("unit", counter.unit);
    row.put("help", counter.help);
    row.add_to(set);
  }
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_counters(): a row per counter.
SF_FUNCTION(streamfilter_counters) {
  InitMaterializedSRF(fcinfo, 0);
  auto* set = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  put_table(set, "filter", "streamfilter_", kRowCounters);
  put_table(set, "trigger", "streamfilter_trigger_", kTriggerCounters);
  put_table(set, "slice", "streamfilter_slice_", kSliceCounters);
  return static_cast<Datum>(0);
}

// Declared by test/t/103_every_counter.pl: sets the counters of a filter to an array, unless NULL,
// and returns them in the order of streamfilter_counters().
SF_FUNCTION(streamfilter_set_counters) {
  if (!superuser() || PG_ARGISNULL(0)) elog(ERROR, "streamfilter_set_counters is for tests");
  FilterHandle* filter = filter_handle(PG_GETARG_OID(0));
  use_filter(filter, Use::define);
  const bool is_elsewhere = is_remote(filter->relation);
  RowCounts counts =
      is_elsewhere ? read_filter_work(filter->relid).counts : counts_to_show(filter->relation);
  if (!PG_ARGISNULL(1)) {
    const ArrayType* array = PG_GETARG_ARRAYTYPE_P(1);
    const int given = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
    memcpy(counts.values, ARR_DATA_PTR(array), sizeof(int64) * Min(given, RowCounts::kCount));
    if (is_elsewhere) {
      put_filter_work(MyDatabaseId, filter->relid, {counts, GetCurrentTimestamp()});
    } else {
      use_filter(filter, Use::test_granted);
      filter->slot->stats.counts.set(counts);
    }
  }
  Datum values[RowCounts::kCount];
  for (int i = 0; i < RowCounts::kCount; ++i)
    values[i] = Int64GetDatum(static_cast<int64>(counts.values[i]));
  PG_RETURN_ARRAYTYPE_P(
      construct_array(values, RowCounts::kCount, INT8OID, sizeof(int64), true, TYPALIGN_DOUBLE));
}
