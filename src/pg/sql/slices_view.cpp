// streamfilter_slices: places and work of slices of filters on other servers.
#include "pg/server/postgres.hpp"

extern "C" {
#include "foreign/foreign.h"
#include "utils/timestamp.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/named_row.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/sql/stats_view.hpp"

namespace streamfilter::pg {
namespace {

// As far as sessions here have learned since the start of the server; otherwise the first place.
uint32 place_of(const FilterRelation* relation, uint32 slice, const SliceWork& work) {
  const bool has_moved = may_move_slices(relation) && work.epoch > 0 &&
                         work.server < static_cast<uint32>(relation->server_count);
  return has_moved ? work.server : slice % static_cast<uint32>(home_count(relation));
}

void put_slice(ReturnSetInfo* result, const FilterRelation* relation, uint32 slice) {
  const SliceWork work = read_slice_work(relation->relid, slice);
  const Oid server = relation->servers[place_of(relation, slice, work)];
  const TimestampTz since = unreachable_since(server);
  NamedRow row(result->setDesc);
  row.put("slice", Int32GetDatum(static_cast<int32>(slice)));
  // No lock keeps it from being dropped.
  const ForeignServer* found = GetForeignServerExtended(server, FSV_MISSING_OK);
  row.put("server", found == nullptr ? nullptr : found->servername);
  row.put("lost", BoolGetDatum(since != 0));
  row.put_time("lost_since", since);
  if (slice < kMaxCountedSlices) row.put_counts(kSliceCounters, work.counts);
  row.add_to(result);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_slice_stats(filter oid): rows of streamfilter_slices; none for a local filter.
SF_FUNCTION(streamfilter_slice_stats) {
  ReturnSetInfo* set = begin_rows(fcinfo);
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  if (fault) put_fault(set, fault);
  if (relation == nullptr || !is_remote(relation)) return static_cast<Datum>(0);
  flush_counters();
  for (uint32 i = 0; i < relation->definition.parameters.slices; ++i) put_slice(set, relation, i);
  return static_cast<Datum>(0);
}
