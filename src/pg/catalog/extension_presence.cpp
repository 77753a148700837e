#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_foreign_data_wrapper.h"
#include "utils/inval.h"
}

#include "pg/catalog/extension_presence.hpp"
#include "pg/key/trusted_code.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

enum class Presence : uint8 { unknown, absent, here };

Presence presence = Presence::unknown;

// CREATE EXTENSION makes a wrapper, for which sessions get an invalidation; for the extension
// itself they get none.
void on_wrapper_change(Datum, int, uint32) {
  if (presence == Presence::absent) presence = Presence::unknown;
}

bool has_own_wrapper() {
  bool found = false;
  scan_catalog<FormData_pg_foreign_data_wrapper>(
      ForeignDataWrapperRelationId, [&](const auto& row, HeapTuple, TupleDesc) {
        found = found || is_own_function(row.fdwhandler, "streamfilter_fdw_handler");
      });
  return found;
}

pg_noinline bool look_for_extension() {
  if (!OidIsValid(MyDatabaseId) || !IsTransactionState()) return true;
  static bool is_told = false;
  if (!is_told) CacheRegisterSyscacheCallback(FOREIGNDATAWRAPPEROID, on_wrapper_change, 0);
  is_told = true;
  // Set before the look-up, so that a change meanwhile makes the next call look again.
  presence = Presence::absent;
  const bool found = has_own_wrapper();
  if (found) presence = Presence::here;
  return found;
}

}  // namespace

bool is_extension_here() {
  if (likely(presence != Presence::unknown)) return presence == Presence::here;
  return look_for_extension();
}

}  // namespace streamfilter::pg
