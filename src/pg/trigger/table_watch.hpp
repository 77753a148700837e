// Has a table changed since somebody has looked? Counts the invalidations of tables that are
// watched.
#pragma once

namespace streamfilter::pg {

struct TableWatch {
  Oid table;
  uint64 changes;
};

// Never freed.
const TableWatch* watch_table(Oid table);

}  // namespace streamfilter::pg
