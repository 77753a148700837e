#include "pg/ddl/default_fpr.hpp"
#include "pg/server/syscache.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "utils/inval.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

void add_fpr(Oid relid, const char* fpr) {
  Relation catalog = table_open(ForeignTableRelationId, RowExclusiveLock);
  HeapTuple tuple = copy_of_row(FOREIGNTABLEREL, relid);
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for foreign table %u", relid);
  int column = Anum_pg_foreign_table_ftoptions;
  bool isnull;
  const Datum former = SysCacheGetAttr(FOREIGNTABLEREL, tuple, column, &isnull);
  DefElem* option =
      makeDefElem(pstrdup("fpr"), reinterpret_cast<Node*>(makeString(pstrdup(fpr))), -1);
  Datum options =
      transformGenericOptions(ForeignTableRelationId, isnull ? PointerGetDatum(nullptr) : former,
                              list_make1(option), InvalidOid);
  isnull = false;
  HeapTuple altered =
      heap_modify_tuple_by_cols(tuple, RelationGetDescr(catalog), 1, &column, &options, &isnull);
  CatalogTupleUpdate(catalog, &altered->t_self, altered);
  table_close(catalog, RowExclusiveLock);
  CacheInvalidateRelcacheByRelid(relid);
  CommandCounterIncrement();
}

}  // namespace

// check_function_bodies is no reason to leave it out: dumps have the rate, and it is off in
// migrations, too.
void write_default_fpr(Oid relid) {
  if (!is_filter(relid)) return;
  List* options = options_of_filter(relid);
  const char* fpr = kDefaultFpr;
  if (const Oid parent = find_parent(relid); OidIsValid(parent) && is_filter(parent))
    fpr = find_option(options_of_filter(parent), "fpr");
  Fault fault;
  if (fpr != nullptr && takes_fpr(options, fpr, fault))
    add_fpr(relid, fpr);
  else if (fault)
    ereport(is_restoring() ? WARNING : ERROR, fault_report(fault));
}

}  // namespace streamfilter::pg
