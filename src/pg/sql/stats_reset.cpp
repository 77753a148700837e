// streamfilter_stats_reset: sets counters to zero, and leaves keys alone.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/acl.h"
#include "utils/timestamp.h"
}

#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/ddl/citus_ddl.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/remote/alter_parts.hpp"
#include "pg/shmem/loss_estimate.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/shmem/trigger_counts.hpp"

namespace streamfilter::pg {
namespace {

// For one filter, or, with InvalidOid, for all of this database.
void reset(Oid relid) {
  flush_counters();
  if (shared_state == nullptr) return;
  const TimestampTz now = GetCurrentTimestamp();
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  for (int i = 0; i < shared_state->slot_count; ++i) {
    FilterSlot* slot = &shared_state->slots[i];
    if (slot->state != SlotState::free && slot->database == MyDatabaseId &&
        (!OidIsValid(relid) || slot->relation == relid)) {
      reset_statistics(&slot->stats, now);
      expect_other_rate(slot);
    }
  }
  LWLockRelease(shared_state->directory_lock);
  reset_counts(relid);
  reset_trigger_counts(relid);
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_stats_reset(filter regclass): for one filter, by its owner.
SF_FUNCTION(streamfilter_stats_reset) {
  const Oid relid = PG_GETARG_OID(0);
  require_own_filter(relid);
  Fault fault;
  if (const FilterRelation* relation = show_filter_relation(relid, fault);
      relation != nullptr && is_remote(relation))
    call_parts(relation, {"streamfilter_stats_reset", "reset the counters of"});
  reset(relid);
  call_on_other_nodes(relid, fcinfo->flinfo->fn_oid);
  PG_RETURN_VOID();
}

// streamfilter_stats_reset(): for all filters of the database, by superusers.
SF_FUNCTION(streamfilter_stats_reset_all) {
  reset(InvalidOid);
  call_on_other_nodes(InvalidOid, fcinfo->flinfo->fn_oid);
  PG_RETURN_VOID();
}
