#include "pg/server/postgres.hpp"

#include "pg/trigger/divert.hpp"
#include "pg/trigger/restored_rows.hpp"

namespace streamfilter::pg {

RestoredRows restored_rows = {};

// Rows that user triggers insert meanwhile belong to other statements.
bool is_restored_in(Oid table, uint64 statement) {
  if (topmost_table(table) != restored_rows.table) return false;
  if (restored_rows.statement == 0) restored_rows.statement = statement;
  return restored_rows.statement == statement;
}

bool keeps_keys_of(Oid table) { return topmost_table(table) == restored_rows.table; }

}  // namespace streamfilter::pg
