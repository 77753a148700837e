// streamfilter_triggers: the work of this database's triggers.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/timestamp.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/server/named_row.hpp"
#include "pg/shmem/trigger_counts.hpp"
#include "pg/trigger/trigger_binding.hpp"
#include "pg/trigger/trigger_kind.hpp"

using namespace streamfilter::pg;

// streamfilter_trigger_stat(trigger oid): one row of streamfilter_triggers; NULLs if it is not one
// of ours, or never fires itself, because its table is partitioned.
SF_FUNCTION(streamfilter_trigger_stat) {
  NamedRow result(fcinfo);
  TriggerRow row;
  TriggerKind kind;
  if (read_trigger_row(PG_GETARG_OID(0), &row) && find_kind(row.function, &kind) &&
      get_rel_relkind(row.table) != RELKIND_PARTITIONED_TABLE) {
    const Oid filter = filter_of_trigger(&row);
    if (OidIsValid(filter)) result.put("filter", ObjectIdGetDatum(filter));
    result.put("kind", name_of(kind));
    flush_counters();
    TriggerCounts counts;
    TimestampTz since;
    if (read_trigger_counts(row.trigger, &counts, &since)) {
      result.put_counts(kTriggerCounters, counts);
      result.put_time("since", since);
    }
  }
  PG_RETURN_DATUM(result.datum());
}
