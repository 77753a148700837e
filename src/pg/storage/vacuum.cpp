// Gives room back that an image has left. Autovacuum does not do it in time: it goes by statistics
// that a crash loses.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "commands/vacuum.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
}

#include <initializer_list>

#include "pg/storage/image.hpp"
#include "pg/storage/state_heaps.hpp"

namespace streamfilter::pg {
namespace {

// Can nobody see any more what the filter's latest image has deleted? Then the image's own rows are
// old enough, too.
bool is_latest_image_old(Relation images, Oid filter) {
  Snapshot snapshot = register_latest_snapshot();
  StateScan scan(images, filter, snapshot);
  const HeapTuple row = scan.next();
  const bool old =
      row != nullptr && TransactionIdPrecedes(HeapTupleHeaderGetXmin(row->t_data),
                                              GetOldestNonRemovableTransactionId(images));
  scan.end();
  UnregisterSnapshot(snapshot);
  return old;
}

// Without giving pages back to the system, which would lock readers out, here and on standbys.
void vacuum_heap(Relation heap) {
  VacuumParams parameters{};
  parameters.options = VACOPT_VACUUM;
  parameters.freeze_min_age = parameters.freeze_table_age = -1;
  parameters.multixact_freeze_min_age = parameters.multixact_freeze_table_age = -1;
  parameters.log_min_duration = -1;
  parameters.index_cleanup = VACOPTVALUE_AUTO;
  parameters.truncate = VACOPTVALUE_DISABLED;
  parameters.nworkers = -1;
  table_relation_vacuum(heap, &parameters, GetAccessStrategy(BAS_VACUUM));
}

}  // namespace

void vacuum_after_image(Oid filter) {
  StateTables tables;
  if (!open_state_tables(filter, AccessShareLock, AccessShareLock, &tables)) return;
  if (is_latest_image_old(tables.images, filter))
    for (Relation heap : {tables.images, tables.log})
      if (ConditionalLockRelationOid(RelationGetRelid(heap), ShareUpdateExclusiveLock))
        vacuum_heap(heap);
  close_state_tables(tables);
}

}  // namespace streamfilter::pg
