// streamfilter_tree: the work of the nodes of trees of filters.
#include "pg/server/postgres.hpp"

extern "C" {
#include "nodes/pg_list.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/named_row.hpp"
#include "pg/sql/stats_view.hpp"

using namespace streamfilter;
using namespace streamfilter::pg;

// streamfilter_tree_node(filter oid): one row of streamfilter_tree; NULLs if it is no filter (any
// more), or in no tree.
SF_FUNCTION(streamfilter_tree_node) {
  NamedRow row(fcinfo);
  Fault fault;
  const FilterRelation* relation = show_filter_relation(PG_GETARG_OID(0), fault);
  if (fault) row.put("error", fault.text());
  if (relation != nullptr &&
      (relation->options.parent != nullptr || find_children(relation->relid) != NIL)) {
    if (OidIsValid(relation->parent)) row.put("parent", ObjectIdGetDatum(relation->parent));
    row.put("level", Int32GetDatum(relation->level));
    // Other servers count what reaches them.
    if (!is_remote(relation)) {
      const RowCounts counts = counts_to_show(relation);
      row.put_count("accesses", counts[RowCount::accesses]);
      row.put_count("hits", counts[RowCount::hits]);
    }
  }
  PG_RETURN_DATUM(row.datum());
}
