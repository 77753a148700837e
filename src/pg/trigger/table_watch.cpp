#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/hsearch.h"
#include "utils/inval.h"
}

#include "pg/server/no_raise.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/trigger/table_watch.hpp"

namespace streamfilter::pg {
namespace {

HTAB* watches = nullptr;

void on_table_change(Datum, Oid table) {
  const NoRaise marked;
  if (OidIsValid(table)) {
    if (auto* watch = static_cast<TableWatch*>(hash_search(watches, &table, HASH_FIND, nullptr)))
      ++watch->changes;
    return;
  }
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, watches);
  while (auto* watch = static_cast<TableWatch*>(hash_seq_search(&scan))) ++watch->changes;
}

// The owner of a table needs rights on the schema of its filter.
void on_schema_change(Datum, int, uint32) { on_table_change(0, InvalidOid); }

}  // namespace

const TableWatch* watch_table(Oid table) {
  if (watches == nullptr) {
    watches = make_hash_table<Oid, TableWatch>("streamfilter tables with triggers", 16);
    CacheRegisterRelcacheCallback(on_table_change, static_cast<Datum>(0));
    CacheRegisterSyscacheCallback(NAMESPACEOID, on_schema_change, static_cast<Datum>(0));
  }
  bool found;
  auto* watch = static_cast<TableWatch*>(hash_search(watches, &table, HASH_ENTER, &found));
  if (!found) watch->changes = 0;
  return watch;
}

}  // namespace streamfilter::pg
