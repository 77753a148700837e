#include "pg/server/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_foreign_server.h"
#include "nodes/pg_list.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
}

#include "pg/catalog/dependencies.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

// Up: objects of a class that the relation depends on. Down: relations that depend on an object.
enum class Direction : uint8 { up, down };

// By another session, whose transaction has not ended.
bool is_being_deleted(HeapTuple tuple) {
  const uint16 marks = tuple->t_data->t_infomask;
  if ((marks & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(marks)) return false;
  const TransactionId by = HeapTupleHeaderGetRawXmax(tuple->t_data);
  return !TransactionIdIsCurrentTransactionId(by) && TransactionIdIsInProgress(by);
}

List* find_dependencies(Direction direction, Oid from_class, Oid from, Oid to_class,
                        bool being_deleted = true) {
  const bool up = direction == Direction::up;
  List* found = NIL;
  scan_catalog<FormData_pg_depend>(
      DependRelationId, up ? DependDependerIndexId : DependReferenceIndexId,
      {{up ? Anum_pg_depend_classid : Anum_pg_depend_refclassid, from_class},
       {up ? Anum_pg_depend_objid : Anum_pg_depend_refobjid, from}},
      [&](const FormData_pg_depend& row, HeapTuple tuple, TupleDesc) {
        if ((up ? row.refclassid : row.classid) == to_class && row.objsubid == 0 &&
            row.refobjsubid == 0 && row.deptype == DEPENDENCY_NORMAL &&
            (being_deleted || !is_being_deleted(tuple)))
          found = lappend_oid(found, up ? row.refobjid : row.objid);
      });
  return found;
}

bool is_there(Oid class_id, Oid object) {
  return is_in_catalog(class_id == ForeignServerRelationId ? FOREIGNSERVEROID : RELOID,
                       ObjectIdGetDatum(object));
}

}  // namespace

List* objects_needed_by(Oid relid, Oid class_id) {
  return find_dependencies(Direction::up, RelationRelationId, relid, class_id);
}

List* filters_depending_on(Oid class_id, Oid object) {
  List* filters = NIL;
  ListCell* cell;
  foreach (cell, find_dependencies(Direction::down, class_id, object, RelationRelationId))
    if (is_filter(lfirst_oid(cell))) filters = list_append_unique_oid(filters, lfirst_oid(cell));
  return filters;
}

List* lasting_children(Oid filter) {
  return find_dependencies(Direction::down, RelationRelationId, filter, RelationRelationId, false);
}

bool depend_on(Oid relid, Oid class_id, Oid object) {
  if (list_member_oid(objects_needed_by(relid, class_id), object)) return true;
  // Lock it: a concurrent DROP must see the dependency that is about to be recorded.
  if (class_id == RelationRelationId)
    LockRelationOid(object, AccessShareLock);
  else
    LockDatabaseObject(class_id, object, 0, AccessShareLock);
  if (!is_there(class_id, object))
    ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
            errmsg("what filter \"%s\" depends on was dropped just now", get_rel_name(relid)));
  const ObjectAddress filter = {RelationRelationId, relid, 0};
  const ObjectAddress referenced = {class_id, object, 0};
  recordDependencyOn(&filter, &referenced, DEPENDENCY_NORMAL);
  return false;
}

void depend_no_more_on(Oid relid, Oid class_id, Oid object) {
  deleteDependencyRecordsForSpecific(RelationRelationId, relid, DEPENDENCY_NORMAL, class_id,
                                     object);
}

bool depend_on_servers(const FilterRelation* relation) {
  ListCell* cell;
  foreach (cell, objects_needed_by(relation->relid, ForeignServerRelationId)) {
    const Oid server = lfirst_oid(cell);
    bool needed = server == relation->server;
    for (int i = 0; i < relation->server_count; ++i) needed |= server == relation->servers[i];
    if (!needed) depend_no_more_on(relation->relid, ForeignServerRelationId, server);
  }
  bool before = depend_on(relation->relid, ForeignServerRelationId, relation->server);
  for (int i = 0; i < relation->server_count; ++i)
    if (relation->servers[i] != relation->server)
      before &= depend_on(relation->relid, ForeignServerRelationId, relation->servers[i]);
  return before;
}

bool may_record_dependencies() {
  return !RecoveryInProgress() && !XactReadOnly && !IsInParallelMode();
}

}  // namespace streamfilter::pg
