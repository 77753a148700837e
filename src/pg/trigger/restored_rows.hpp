// streamfilter_settle() moves false positives back into their table. The filter has judged these
// rows before, wrongly, so our triggers let them pass.
#pragma once

extern "C" {
#include "utils/rel.h"
}

#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {

// The table whose rows are being settled; at most one per session.
struct RestoredRows {
  Oid table;         // the topmost table; InvalidOid if none
  uint64 statement;  // inserts the rows; 0 until the first row
  bool keeps_keys;   // deleted rows have copies that stay, so their keys do, too
};

inline RestoredRows restored_rows = {};

// Rows that user triggers insert meanwhile belong to other statements.
inline bool is_restored_in(Oid table, uint64 statement) {
  if (topmost_table(table) != restored_rows.table) return false;
  if (restored_rows.statement == 0) restored_rows.statement = statement;
  return restored_rows.statement == statement;
}

// Is a row that `statement` inserts into the table a restored one? Called for every row.
inline bool is_restored(const RelationData* table, uint64 statement) {
  return unlikely(OidIsValid(restored_rows.table)) && is_restored_in(table->rd_id, statement);
}

// Do keys of rows deleted from the table stay in the filter?
inline bool keeps_keys(const RelationData* table) {
  return unlikely(restored_rows.keeps_keys) && topmost_table(table->rd_id) == restored_rows.table;
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
