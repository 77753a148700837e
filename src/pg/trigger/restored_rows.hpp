// Rows that streamfilter_settle() moves into their table: the filter has judged them before, and
// wrongly, so that our triggers there let them pass.
#pragma once

extern "C" {
#include "utils/rel.h"
}

namespace streamfilter::pg {

// A table whose rows are being settled; one at a time, or none.
struct RestoredRows {
  Oid table;         // the topmost one; InvalidOid: none is
  uint64 statement;  // that inserts the rows; 0: its first row has not come yet
  bool keeps_keys;   // rows that are deleted have copies that stay
};

extern RestoredRows restored_rows;

bool is_restored_in(Oid table, uint64 statement);

// Is a row that `statement` inserts into the table one of them? To be asked for every row.
inline bool is_restored(const RelationData* table, uint64 statement) {
  return unlikely(OidIsValid(restored_rows.table)) && is_restored_in(table->rd_id, statement);
}

// Do keys of rows that are deleted from the table stay in the filter?
bool keeps_keys_of(Oid table);
inline bool keeps_keys(const RelationData* table) {
  return unlikely(restored_rows.keeps_keys) && keeps_keys_of(table->rd_id);
}

// Calls run() while rows of the table are settled.
template <typename Run>
void while_restoring(const RestoredRows& rows, const Run& run) {
  const RestoredRows outer = restored_rows;
  PG_TRY();
  {
    restored_rows = rows;
    run();
  }
  PG_FINALLY();
  { restored_rows = outer; }
  PG_END_TRY();
}

}  // namespace streamfilter::pg
