// streamfilter_tree: what the nodes of trees of filters have to do.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "funcapi.h"
#include "nodes/pg_list.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/sql/stats_view.hpp"

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_tree_node(filter oid): one row of streamfilter_tree; NULLs if it is no filter (any
// more), or in no tree.
SF_FUNCTION(streamfilter_tree_node) {
  TupleDesc descriptor;
  if (get_call_result_type(fcinfo, nullptr, &descriptor) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  Datum values[5] = {};
  bool isnull[5] = {true, true, true, true, true};
  if (fault && has_error_column(descriptor)) {
    values[4] = CStringGetTextDatum(fault.text());
    isnull[4] = false;
  }
  if (relation != nullptr &&
      (relation->options.parent != nullptr || find_children(relation->relid) != NIL)) {
    flush_counters();
    FilterSlot* slot = peek_slot(relation);
    const auto count = [](pg_atomic_uint64* counter) {
      return Int64GetDatum(counter == nullptr ? 0
                                              : static_cast<int64>(pg_atomic_read_u64(counter)));
    };
    values[0] = ObjectIdGetDatum(relation->parent);
    values[1] = Int32GetDatum(relation->level);
    values[2] = count(slot ? &slot->accesses : nullptr);
    values[3] = count(slot ? &slot->hits : nullptr);
    isnull[0] = !OidIsValid(relation->parent);
    isnull[1] = false;
    isnull[2] = isnull[3] = is_remote(relation);  // what reaches other servers is counted there
  }
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, isnull)));
}
