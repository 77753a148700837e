// A child depends on its parent as on anything it was made from: DROP names it, and CASCADE drops
// it. What it depends on is found by name when it, or its parent, is created or altered.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "lib/stringinfo.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
}

#include "pg/ddl/hierarchy_ddl.hpp"
#include "pg/handle/hierarchy.hpp"

namespace streamfilter::pg {
namespace {

// The filters that an object depends on, or those that depend on it.
enum class Direction : uint8 { up, down };

List* dependent_filters(Oid class_id, Oid object, Direction direction) {
  const bool up = direction == Direction::up;
  List* found = NIL;
  Relation catalog = table_open(DependRelationId, AccessShareLock);
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], up ? Anum_pg_depend_classid : Anum_pg_depend_refclassid,
              BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(class_id));
  ScanKeyInit(&keys[1], up ? Anum_pg_depend_objid : Anum_pg_depend_refobjid, BTEqualStrategyNumber,
              F_OIDEQ, ObjectIdGetDatum(object));
  SysScanDesc scan = systable_beginscan(
      catalog, up ? DependDependerIndexId : DependReferenceIndexId, true, nullptr, 2, keys);
  HeapTuple tuple;
  while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
    const auto* form = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    const Oid other_class = up ? form->refclassid : form->classid;
    const Oid other = up ? form->refobjid : form->objid;
    if (other_class == RelationRelationId && form->objsubid == 0 && form->refobjsubid == 0 &&
        form->deptype == DEPENDENCY_NORMAL && is_filter(other))
      found = lappend_oid(found, other);
  }
  systable_endscan(scan);
  table_close(catalog, AccessShareLock);
  return found;
}

void look_again(Oid relid) {
  if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid))) CacheInvalidateRelcacheByRelid(relid);
}

void look_again(List* relids) {
  ListCell* cell;
  foreach (cell, relids) look_again(lfirst_oid(cell));
}

void look_again_upwards(Oid relid) {
  Oid ancestor = relid;
  for (unsigned i = 0; i < kMostTreeLevels && OidIsValid(ancestor); ++i) {
    look_again(ancestor);
    ancestor = find_parent(ancestor);
  }
}

// Makes a filter depend on its parent, and on no other filter. Nobody holds up the DROP of a filter
// that he has no rights on.
void depend_on_parent(Oid relid, Oid parent) {
  List* before = dependent_filters(RelationRelationId, relid, Direction::up);
  ListCell* cell;
  foreach (cell, before) {
    if (lfirst_oid(cell) == parent) continue;
    deleteDependencyRecordsForSpecific(RelationRelationId, relid, DEPENDENCY_NORMAL,
                                       RelationRelationId, lfirst_oid(cell));
    look_again_upwards(lfirst_oid(cell));
  }
  if (!OidIsValid(parent) || list_member_oid(before, parent) ||
      !has_rights_on_parent(relid, parent))
    return;
  ObjectAddress child = {RelationRelationId, relid, 0};
  ObjectAddress referenced = {RelationRelationId, parent, 0};
  recordDependencyOn(&child, &referenced, DEPENDENCY_NORMAL);
}

// Children that were created before their parent, as a dump may do, or that its ALTER concerns.
void check_children(const FilterRelation* relation) {
  ListCell* cell;
  foreach (cell, find_children(relation->relid)) {
    const Oid child = lfirst_oid(cell);
    depend_on_parent(child, relation->relid);
    check_fit(WARNING, load_filter_relation(child), relation);
  }
}

const char* list_names(List* relids) {
  StringInfoData names;
  initStringInfo(&names);
  ListCell* cell;
  foreach (cell, relids)
    appendStringInfo(
        &names, "%s%s", names.len > 0 ? ", " : "",
        quote_qualified_identifier(get_namespace_name(get_rel_namespace(lfirst_oid(cell))),
                                   get_rel_name(lfirst_oid(cell))));
  return names.data;
}

}  // namespace

List* filters_depending_on(Oid class_id, Oid object) {
  return dependent_filters(class_id, object, Direction::down);
}

void check_tree(const FilterRelation* relation) {
  if (relation->host.parent != nullptr) {
    if (!OidIsValid(relation->parent)) {
      report_missing_parent(WARNING, relation);
    } else {
      check_way_up(relation);
      const FilterRelation* parent = load_filter_relation(relation->parent);
      check_fit(ERROR, relation, parent);
      check_rights_on_parent(WARNING, relation, parent);
    }
  }
  depend_on_parent(relation->relid, relation->parent);
  check_children(relation);
  look_again_upwards(relation->relid);
  look_again(find_descendants(relation->relid));
}

void warn_of_lost_children(Oid relid) {
  List* lost = NIL;
  ListCell* cell;
  foreach (cell, filters_depending_on(RelationRelationId, relid))
    if (find_parent(lfirst_oid(cell)) != relid) lost = lappend_oid(lost, lfirst_oid(cell));
  if (lost == NIL) return;
  look_again(lost);
  ereport(WARNING,
          errmsg("children of filter \"%s\" name their parent differently", get_rel_name(relid)),
          errdetail("They are: %s.", list_names(lost)),
          errhint("ALTER FOREIGN TABLE ... OPTIONS (SET parent '%s') for each of them.",
                  quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
                                             get_rel_name(relid))));
}

void leave_tree(Oid relid) { look_again_upwards(find_parent(relid)); }

void warn_of_remembering_children(Oid relid, List* truncated) {
  List* rest = list_difference_oid(find_descendants(relid), truncated);
  if (rest == NIL) return;
  ereport(WARNING,
          errmsg("filters below filter \"%s\" go on remembering their keys", get_rel_name(relid)),
          errdetail("They are: %s.", list_names(rest)),
          errhint("TRUNCATE them together with \"%s\" to forget all keys of the tree.",
                  get_rel_name(relid)));
}

}  // namespace streamfilter::pg
