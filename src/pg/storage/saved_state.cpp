#include "pg/server/postgres.hpp"

extern "C" {
#include "access/heapam.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

#include "pg/storage/saved_state.hpp"

namespace streamfilter::pg {
namespace {

bool has_rows(Relation table, Oid filter, Snapshot snapshot) {
  StateScan scan(table, filter, snapshot);
  const bool found = scan.next() != nullptr;
  scan.end();
  return found;
}

}  // namespace

bool is_anything_saved(Oid relation) {
  StateTables tables;
  if (!has_state_tables(relation) ||
      !open_state_tables(relation, AccessShareLock, AccessShareLock, &tables))
    return false;
  Snapshot snapshot = register_latest_snapshot();
  const bool found =
      has_rows(tables.log, relation, snapshot) || has_rows(tables.images, relation, snapshot);
  UnregisterSnapshot(snapshot);
  close_state_tables(tables);
  return found;
}

uint64 delete_saved_state(Oid relation, const int64* except) {
  StateTables tables;
  if (!is_anything_saved(relation) ||
      !open_state_tables(relation, ShareUpdateExclusiveLock, RowExclusiveLock, &tables))
    return 0;
  CommandCounterIncrement();
  Snapshot snapshot = register_latest_snapshot();
  const uint64 bytes = delete_rows(tables.images, relation, snapshot, except) +
                       delete_rows(tables.log, relation, snapshot, except);
  UnregisterSnapshot(snapshot);
  close_state_tables(tables);
  return bytes;
}

uint64 move_log_rows(Relation log, const FilterSlot* from, FilterSlot* to) {
  CommandCounterIncrement();
  Snapshot snapshot = register_latest_snapshot();
  uint64 bytes = 0;
  StateScan scan(log, from->relation, snapshot);
  while (HeapTuple tuple = scan.next()) {
    LogRow row;
    if (identity_in(log, tuple) != from->saved.identity) continue;
    if (!read_row(log, tuple, &row) || !is_sound(row))
      ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
              errmsg("the saved log of filter \"%s\" is damaged", get_rel_name(from->relation)));
    // The copy has its own header and collations.
    if (!is_header(row.change) && row.change != LogChange::collations) {
      row.identity = to->saved.identity;
      bytes += write_row(log, row, &to->saved.last_page);
    }
    simple_heap_delete(log, &tuple->t_self);
  }
  scan.end();
  UnregisterSnapshot(snapshot);
  return bytes;
}

}  // namespace streamfilter::pg
