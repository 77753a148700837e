#include "pg/server/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "lib/stringinfo.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
}

#include <initializer_list>

#include "pg/catalog/own_function.hpp"
#include "pg/trigger/trigger_binding.hpp"
#include "pg/trigger/trigger_kind.hpp"

namespace streamfilter::pg {
namespace {

TriggerRow row_of(HeapTuple tuple) {
  const auto* form = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(tuple));
  return {form->oid, form->tgparentid, form->tgrelid, form->tgfoid, form->tgconstrrelid};
}

// The caller closes scan and catalog.
SysScanDesc scan_for_trigger(Relation catalog, Oid trigger) {
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(trigger));
  return systable_beginscan(catalog, TriggerOidIndexId, true, nullptr, 1, &key);
}

const char* qualified_name(Oid relation) {
  return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
                                    get_rel_name(relation));
}

// Arguments as pg_trigger has them, each ended by a zero byte, with another first one.
bytea* with_first_argument(const bytea* arguments, const char* first) {
  const char* old = VARDATA_ANY(arguments);
  const Size length = VARSIZE_ANY_EXHDR(arguments);
  const Size old_first = strnlen(old, length);
  const Size rest = old_first < length ? length - old_first - 1 : 0;
  const Size new_first = strlen(first) + 1;
  auto* result = static_cast<bytea*>(palloc(VARHDRSZ + new_first + rest));
  SET_VARSIZE(result, VARHDRSZ + new_first + rest);
  memcpy(VARDATA(result), first, new_first);
  memcpy(VARDATA(result) + new_first, old + (length - rest), rest);
  return result;
}

// Writes the name of the filter into the trigger, and its OID unless that is InvalidOid.
void write_filter(Relation catalog, Oid trigger, const char* name, Oid filter) {
  SysScanDesc scan = scan_for_trigger(catalog, trigger);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    bool isnull;
    const bytea* arguments = DatumGetByteaPP(
        heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(catalog), &isnull));
    int columns[] = {Anum_pg_trigger_tgargs, Anum_pg_trigger_tgconstrrelid};
    Datum values[] = {PointerGetDatum(with_first_argument(arguments, name)),
                      ObjectIdGetDatum(filter)};
    bool nulls[] = {false, false};
    HeapTuple changed = heap_modify_tuple_by_cols(
        tuple, RelationGetDescr(catalog), OidIsValid(filter) ? 2 : 1, columns, values, nulls);
    CatalogTupleUpdate(catalog, &tuple->t_self, changed);
    CacheInvalidateRelcacheByRelid(row_of(tuple).table);
  }
  systable_endscan(scan);
}

// Is its first argument this name?
bool has_name(Oid trigger, const char* name) {
  Relation catalog = table_open(TriggerRelationId, AccessShareLock);
  SysScanDesc scan = scan_for_trigger(catalog, trigger);
  HeapTuple tuple = systable_getnext(scan);
  bool same = false;
  if (HeapTupleIsValid(tuple)) {
    bool isnull;
    const bytea* arguments = DatumGetByteaPP(
        heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(catalog), &isnull));
    const Size length = strlen(name) + 1;
    same =
        VARSIZE_ANY_EXHDR(arguments) >= length && memcmp(VARDATA_ANY(arguments), name, length) == 0;
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return same;
}

List* find_clones(Oid trigger) {
  Relation catalog = table_open(DependRelationId, AccessShareLock);
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(TriggerRelationId));
  ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(trigger));
  SysScanDesc scan = systable_beginscan(catalog, DependReferenceIndexId, true, nullptr, 2, keys);
  List* clones = NIL;
  HeapTuple tuple;
  while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
    const auto* form = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    if (form->classid == TriggerRelationId && form->deptype == DEPENDENCY_PARTITION_PRI)
      clones = lappend_oid(clones, form->objid);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return clones;
}

void write_name_into_clones(Relation catalog, Oid trigger, const char* name) {
  check_stack_depth();
  ListCell* cell;
  foreach (cell, find_clones(trigger)) {
    TriggerRow clone;
    if (!read_trigger_row(lfirst_oid(cell), &clone)) continue;
    LockRelationOid(clone.table, ShareUpdateExclusiveLock);
    write_filter(catalog, clone.trigger, name, InvalidOid);
    write_name_into_clones(catalog, clone.trigger, name);
  }
}

void depend_on_filter(Oid trigger, Oid filter) {
  const ObjectAddress self = {TriggerRelationId, trigger, 0};
  const ObjectAddress target = {RelationRelationId, filter, 0};
  deleteDependencyRecordsForSpecific(TriggerRelationId, trigger, DEPENDENCY_NORMAL,
                                     RelationRelationId, filter);
  recordDependencyOn(&self, &target, DEPENDENCY_NORMAL);
}

bool lock_if_free(Oid trigger) {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, MyDatabaseId, TriggerRelationId, trigger, 0);
  return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

}  // namespace

bool read_trigger_row(Oid trigger, TriggerRow* row) {
  Relation catalog = table_open(TriggerRelationId, AccessShareLock);
  SysScanDesc scan = scan_for_trigger(catalog, trigger);
  HeapTuple tuple = systable_getnext(scan);
  const bool found = HeapTupleIsValid(tuple);
  if (found) *row = row_of(tuple);
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

Oid filter_of_trigger(const TriggerRow* row) {
  TriggerRow at = *row;
  while (OidIsValid(at.parent) && read_trigger_row(at.parent, &at)) continue;
  return at.filter;
}

void bind_trigger(Oid trigger, Oid filter) {
  const char* name = qualified_name(filter);
  Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
  write_filter(catalog, trigger, name, filter);
  write_name_into_clones(catalog, trigger, name);
  table_close(catalog, RowExclusiveLock);
  depend_on_filter(trigger, filter);
  CommandCounterIncrement();
}

Oid bind_when_fired(Oid trigger, Oid table, Oid filter) {
  if (XactReadOnly || IsInParallelMode()) return filter;
  // The first keeps others from altering the trigger, the second from binding it. Nobody waits
  // here.
  if (!ConditionalLockRelationOid(table, RowExclusiveLock) || !lock_if_free(trigger)) return filter;
  TriggerRow row;
  if (!read_trigger_row(trigger, &row)) return filter;
  if (OidIsValid(row.filter)) return row.filter;
  // The names in its clones can wait.
  Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
  write_filter(catalog, trigger, qualified_name(filter), filter);
  table_close(catalog, RowExclusiveLock);
  depend_on_filter(trigger, filter);
  CommandCounterIncrement();  // the same statement may fire it for another partition
  return filter;
}

List* find_triggers(Oid filter) {
  Relation catalog = table_open(TriggerRelationId, AccessShareLock);
  SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
  List* found = NIL;
  HeapTuple tuple;
  while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
    const TriggerRow row = row_of(tuple);
    TriggerKind kind;
    if (OidIsValid(row.parent) || (OidIsValid(filter) && row.filter != filter) ||
        !find_kind(row.function, &kind))
      continue;
    auto* copy = static_cast<TriggerRow*>(palloc(sizeof(TriggerRow)));
    *copy = row;
    found = lappend(found, copy);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

void follow_filter_names() {
  ListCell* cell;
  foreach (cell, find_triggers(InvalidOid)) {
    const auto* row = static_cast<const TriggerRow*>(lfirst(cell));
    if (!OidIsValid(row->filter) || get_rel_name(row->filter) == nullptr ||
        has_name(row->trigger, qualified_name(row->filter)))
      continue;
    LockRelationOid(row->table, ShareUpdateExclusiveLock);
    TriggerRow now;  // while we waited for the lock, it may have gone
    if (read_trigger_row(row->trigger, &now) && now.filter == row->filter)
      bind_trigger(now.trigger, now.filter);
  }
}

}  // namespace streamfilter::pg
