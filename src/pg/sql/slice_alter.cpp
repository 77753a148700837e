// Called by the server where a filter is altered: gives new options to the relation with its
// slices.
#include "pg/server/postgres.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/catalog/slice_origin.hpp"
#include "pg/ddl/remote_ddl.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/sql/slice_relation.hpp"

namespace streamfilter::pg {
namespace {

// Adds an option to those of an ALTER FOREIGN TABLE, unless it has the value already. nullptr: it
// stays as it is.
void append_change(StringInfo changes, List* before, const char* name, const char* value) {
  const char* old = find_option(before, name);
  if (value == nullptr || (old != nullptr && strcmp(old, value) == 0)) return;
  appendStringInfo(changes, "%s%s %s %s", changes->len > 0 ? ", " : "",
                   old != nullptr ? "SET" : "ADD", name, quote_literal_cstr(value));
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_hashes_alter(filter regclass, conflict text, persistence text, producer text): NULL
// leaves an option unchanged. Needs ownership.
SF_FUNCTION(streamfilter_hashes_alter) {
  if (PG_ARGISNULL(0))
    ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
            errmsg("the filter of streamfilter_hashes_alter must not be null"));
  const Oid relid = PG_GETARG_OID(0);
  const char* producer = text_argument(fcinfo, 3);
  check_producer_agrees(lock_slices(relid)->relation, {nullptr, nullptr, producer});
  List* before = options_of_filter(relid);
  StringInfoData changes;
  initStringInfo(&changes);
  append_change(&changes, before, "conflict", text_argument(fcinfo, 1));
  append_change(&changes, before, "persistence", text_argument(fcinfo, 2));
  append_change(&changes, before, "producer", producer);
  if (changes.len > 0) alter_options(relid, changes.data);
  PG_RETURN_VOID();
}
