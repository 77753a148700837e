// streamfilter_triggers: what the triggers of this database have done.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "utils/timestamp.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/shmem/trigger_counts.hpp"
#include "pg/trigger/trigger_binding.hpp"
#include "pg/trigger/trigger_kind.hpp"

using namespace streamfilter::pg;

// streamfilter_trigger_stat(trigger oid): one row of streamfilter_triggers; NULLs if it is none of
// ours, or never fires itself: that of a partitioned table fires for its partitions.
SF_FUNCTION(streamfilter_trigger_stat) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  constexpr int kColumns = 7;
  Datum values[kColumns] = {};
  bool isnull[kColumns];
  memset(isnull, true, sizeof isnull);
  const auto put = [&](int column, Datum value) {
    values[column] = value;
    isnull[column] = false;
  };
  TriggerRow row;
  TriggerKind kind;
  if (read_trigger_row(PG_GETARG_OID(0), &row) && find_kind(row.function, &kind) &&
      get_rel_relkind(row.table) != RELKIND_PARTITIONED_TABLE) {
    const Oid filter = filter_of_trigger(&row);
    if (OidIsValid(filter)) put(0, ObjectIdGetDatum(filter));
    put(1, CStringGetTextDatum(name_of(kind)));
    flush_counters();
    TriggerCounts counts;
    TimestampTz since;
    if (read_trigger_counts(row.trigger, &counts, &since)) {
      const uint64 all[] = {counts.rows, counts.discarded, counts.diverted, counts.would_discard};
      for (int i = 0; i < static_cast<int>(lengthof(all)); ++i)
        put(2 + i, Int64GetDatum(static_cast<int64>(all[i])));
      put(6, TimestampTzGetDatum(since));
    }
  }
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
