// The table of counter_list.hpp in SQL, and streamfilter_triggers: the work of this database's
// triggers.
#include "pg/server/postgres.hpp"

#include "pg/binding/trigger_binding.hpp"
#include "pg/citus/citus_nodes.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/server/rows.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/sql/stats_view.hpp"

namespace streamfilter::pg {
// As Prometheus names metrics: the unit comes last.
static const char* metric_of(const CounterInfo& counter) {
  constexpr char kBytes[] = "bytes_";
  const bool of_filter = strcmp(counter.of, "filter") == 0;
  const char* prefix = of_filter ? "streamfilter" : psprintf("streamfilter_%s", counter.of);
  if (strncmp(counter.name, kBytes, strlen(kBytes)) != 0)
    return psprintf("%s_%s_total", prefix, counter.name);
  return psprintf("%s_%s_bytes_total", prefix, counter.name + strlen(kBytes));
}

static RowCounts row_counts_of(const FilterHandle* filter) {
  return is_remote(filter->relation) ? read_filter_work(filter->relid).counts
                                     : counts_to_show(filter->relation);
}

// Counts what is missing.
static void add_up_to(FilterHandle* filter, const ArrayType* wanted) {
  if (ArrayGetNItems(ARR_NDIM(wanted), ARR_DIMS(wanted)) != RowCounts::kCount)
    elog(ERROR, "%d counters are wanted", RowCounts::kCount);
  use_filter(filter, Use::test_granted);
  const RowCounts before = row_counts_of(filter);
  const auto* values = reinterpret_cast<const uint64*>(ARR_DATA_PTR(wanted));
  HandleCounts& uncounted = filter->uncounted;
  for (int i = 0; i < RowCounts::kCount; ++i)
    uncounted.rows.values[i] = values[i] - before.values[i];
  // As in mode shadow: no row is lost.
  uncounted.spared = uncounted.rows[RowCount::accepted];
  uncounted.marked = uncounted.rows[RowCount::discarded];
  --uncounted.rows[RowCount::tested];
  count_row(filter, RowCount::tested);
  flush_counters();
}

// streamfilter_counters(): a row per counter.
SF_FUNCTION(streamfilter_counters) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  for (const CounterInfo& counter : kCounters) {
    NamedRow row(set->setDesc);
    row.put("counts_of", counter.of);
    row.put("name", counter.name);
    row.put("metric", metric_of(counter));
    row.put("unit", counter.unit);
    row.put("help", counter.help);
    row.add_to(set);
  }
  return static_cast<Datum>(0);
}

// Declared by test/t/api_every_counter.pl: sets the counters of a filter to an array, unless NULL,
// on the way that counts of a session take, and returns them in the order of
// streamfilter_counters().
SF_FUNCTION(streamfilter_set_counters) {
  if (!superuser() || PG_ARGISNULL(0)) elog(ERROR, "streamfilter_set_counters is for tests");
  FilterHandle* filter = filter_for_use(PG_GETARG_OID(0), Use::define);
  if (!PG_ARGISNULL(1)) add_up_to(filter, PG_GETARG_ARRAYTYPE_P(1));
  const RowCounts counts = row_counts_of(filter);
  Datum values[RowCounts::kCount];
  for (int i = 0; i < RowCounts::kCount; ++i)
    values[i] = Int64GetDatum(static_cast<int64>(counts.values[i]));
  PG_RETURN_ARRAYTYPE_P(
      construct_array(values, RowCounts::kCount, INT8OID, sizeof(int64), true, TYPALIGN_DOUBLE));
}

// streamfilter_trigger_stat(trigger oid): one row of streamfilter_triggers; NULLs if it is not one
// of ours, or never fires itself, because its table is partitioned.
SF_FUNCTION(streamfilter_trigger_stat) {
  NamedRow result(fcinfo);
  TriggerRow row;
  TriggerKind kind;
  if (read_trigger_row(PG_GETARG_OID(0), &row) && find_kind(row.function, &kind) &&
      get_rel_relkind(row.table) != RELKIND_PARTITIONED_TABLE) {
    const Oid filter = filter_of_trigger(&row);
    say_shows_one_node(filter);
    if (OidIsValid(filter)) result.put("filter", ObjectIdGetDatum(filter));
    result.put("kind", short_name(kind));
    flush_counters();
    TriggerCounts counts;
    TimestampTz since;
    if (read_trigger_counts(row.trigger, &counts, &since)) {
      result.put_counts(counts);
      result.put_time("since", since);
    }
  }
  PG_RETURN_DATUM(result.datum());
}

}  // namespace streamfilter::pg
