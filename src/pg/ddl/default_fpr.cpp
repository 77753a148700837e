#include "pg/ddl/default_fpr.hpp"
#include "pg/server/syscache.hpp"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_foreign_table.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
}

#include "pg/catalog/filter_options.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

// Do the SQL objects know this default? pg_upgrade creates those of the old cluster.
bool has_default() {
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum("streamfilter"));
  Relation catalog = table_open(ExtensionRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
  bool found = false;
  if (HeapTuple tuple = systable_getnext(scan); HeapTupleIsValid(tuple)) {
    bool isnull;
    const Datum version =
        heap_getattr(tuple, Anum_pg_extension_extversion, RelationGetDescr(catalog), &isnull);
    const char* name = isnull ? "" : TextDatumGetCString(version);
    found = strcmp(name, "1.0") != 0 && strcmp(name, "1.1") != 0;
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

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

bool is_elsewhere(Oid relid) {
  Fault fault;
  const FilterRelation* relation = read_filter_relation(relid, fault);
  return relation != nullptr && is_remote(relation);
}

void warn_of_former_fpr(Oid relid) {
  ereport(WARNING, errmsg("filter \"%s\" keeps fpr %s", get_rel_name(relid), kFormerFpr),
          errdetail("It is on other servers and may come from a dump of version 1.1, where that "
                    "was the default. Its servers must agree."),
          errhint("For the present default, type: ALTER FOREIGN TABLE %s OPTIONS (ADD fpr '%s');",
                  qualified_name(relid), kDefaultFpr));
}

}  // namespace

// In a binary upgrade a filter without the option keeps its state, and the rate that its state has.
// check_function_bodies is no reason to leave it out: dumps of 1.2 have the rate, and it is off in
// migrations, too.
void write_default_fpr(Oid relid) {
  if (!is_filter(relid) || IsBinaryUpgrade || !has_default()) return;
  List* options = options_of_filter(relid);
  const char* fpr = kDefaultFpr;
  if (const Oid parent = find_parent(relid); OidIsValid(parent) && is_filter(parent))
    fpr = find_option(options_of_filter(parent), "fpr");
  Fault fault;
  if (fpr == nullptr || !takes_fpr(options, fpr, fault)) {
    if (fault) ereport(is_restoring() ? WARNING : ERROR, fault_report(fault));
  } else if (is_restoring() && is_elsewhere(relid)) {
    warn_of_former_fpr(relid);
  } else {
    add_fpr(relid, fpr);
  }
}

void write_unsaid_fpr(Oid relid) {
  Fault ignored;
  if (!is_filter(relid) || IsBinaryUpgrade || !has_default()) return;
  List* options = options_of_filter(relid);
  if (!takes_fpr(options, kDefaultFpr, ignored) || !takes_fpr(options, kFormerFpr, ignored) ||
      is_elsewhere(relid))
    return;
  add_fpr(relid, kFormerFpr);
}

}  // namespace streamfilter::pg

// Declared and dropped by the update script: writes the default of 1.1 into the options of local
// filters. Filters over other servers were made without it.
SF_FUNCTION(streamfilter_write_former_fpr) {
  using namespace streamfilter::pg;
  ListCell* cell;
  foreach (cell, list_filters()) {
    const Oid relid = lfirst_oid(cell);
    LockRelationOid(relid, ShareUpdateExclusiveLock);
    Fault fault;
    if (!is_filter(relid) || !takes_fpr(options_of_filter(relid), kFormerFpr, fault)) continue;
    const FilterRelation* relation = read_filter_relation(relid, fault);
    if (relation != nullptr && !is_remote(relation)) add_fpr(relid, kFormerFpr);
  }
  PG_RETURN_VOID();
}
