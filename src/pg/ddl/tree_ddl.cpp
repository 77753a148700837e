// A child depends on its parent: DROP names it, and CASCADE drops it. The dependency is found by
// name when the child or its parent is created or altered.
#include "pg/server/postgres.hpp"

extern "C" {
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "utils/inval.h"
}

#include "pg/catalog/dependencies.hpp"
#include "pg/catalog/lookup.hpp"
#include "pg/ddl/tree_ddl.hpp"
#include "pg/handle/tree.hpp"
#include "pg/server/syscache.hpp"

namespace streamfilter::pg {
namespace {

void look_again(Oid relid) {
  if (is_in_catalog(RELOID, ObjectIdGetDatum(relid))) CacheInvalidateRelcacheByRelid(relid);
}

void look_again(List* relids) {
  ListCell* cell;
  foreach (cell, relids) look_again(lfirst_oid(cell));
}

void look_again_upwards(Oid relid) {
  Oid ancestor = relid;
  for (unsigned i = 0; i < kMaxTreeLevels && OidIsValid(ancestor); ++i) {
    look_again(ancestor);
    ancestor = find_parent(ancestor);
  }
}

// Makes a filter depend on its parent, and on no other filter. An owner without rights on the
// parent must not block its DROP.
void depend_on_parent(Oid relid, Oid parent) {
  ListCell* cell;
  foreach (cell, objects_needed_by(relid, RelationRelationId)) {
    if (lfirst_oid(cell) == parent || !is_filter(lfirst_oid(cell))) continue;
    depend_no_more_on(relid, RelationRelationId, lfirst_oid(cell));
    look_again_upwards(lfirst_oid(cell));
  }
  if (OidIsValid(parent) && is_filter(parent) && has_rights_on_parent(relid, parent))
    depend_on(relid, RelationRelationId, parent);
}

// Checks children that were created before their parent, as in a dump, or that its ALTER affects.
void check_children(const FilterRelation* relation) {
  ListCell* cell;
  foreach (cell, find_children(relation->relid)) {
    const Oid child = lfirst_oid(cell);
    depend_on_parent(child, relation->relid);
    // An unreadable child must not prevent ALTER of its parent.
    Fault fault;
    if (const FilterRelation* read = try_load_filter_relation(child, fault))
      check_fit(WARNING, read, relation);
    else if (const char* name = get_rel_name(child); name != nullptr)  // not dropped just now
      ereport(WARNING, errcode(fault.code),
              errmsg("child \"%s\" of filter \"%s\" cannot be read", name, relation->name),
              errdetail_internal("%s", fault.text()));
  }
}

const char* list_names(List* relids) {
  StringInfoData names;
  initStringInfo(&names);
  ListCell* cell;
  foreach (cell, relids)
    appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", qualified_name(lfirst_oid(cell)));
  return names.data;
}

}  // namespace

void check_tree(const FilterRelation* relation) {
  if (relation->options.parent != nullptr) {
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
                  qualified_name(relid)));
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
