// Counts the invalidations of watched tables, so that a caller can tell whether a table has changed
// since its last look.
#pragma once

namespace streamfilter::pg {

struct TableWatch {
  Oid table;
  uint64 changes;
};

// Never freed.
const TableWatch* watch_table(Oid table);

}  // namespace streamfilter::pg
