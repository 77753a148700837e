// streamfilter_tree: what the nodes of trees of filters have to do.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "nodes/pg_list.h"
}

#include "pg/handle/hierarchy.hpp"

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_tree_node(filter oid): one row of streamfilter_tree; NULL if it is no filter (any
// more), or in no tree.
SF_FUNCTION(streamfilter_tree_node) {
  const Oid relid = PG_GETARG_OID(0);
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) || !is_filter(relid))
    PG_RETURN_NULL();
  const FilterRelation* relation = load_filter_relation(relid);
  if (relation->host.parent == nullptr && find_children(relid) == NIL) PG_RETURN_NULL();
  flush_counters();
  FilterSlot* slot = peek_slot(relation);
  const auto count = [](pg_atomic_uint64* counter) {
    return Int64GetDatum(counter == nullptr ? 0 : static_cast<int64>(pg_atomic_read_u64(counter)));
  };
  Datum values[] = {ObjectIdGetDatum(relation->parent), Int32GetDatum(relation->level),
                    count(slot ? &slot->accesses : nullptr), count(slot ? &slot->hits : nullptr)};
  // What reaches other servers is counted there.
  const bool unknown = is_remote(relation);
  bool isnull[] = {!OidIsValid(relation->parent), false, unknown, unknown};
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, isnull)));
}
