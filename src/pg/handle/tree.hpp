// Trees of filters: which filters hang together by their options `parent`, and whether they fit.
#pragma once

#include "pg/catalog/filter_relation.hpp"

struct List;

namespace streamfilter::pg {

// The parent that the options of a filter name: an unqualified name is looked up in the filter's
// own schema. InvalidOid: none, or there is no such relation.
Oid find_parent(Oid relid);

// The options parent, tree and top_down of a filter. What cannot be read is said where the filter
// itself is used.
RelationOptions tree_options_of(Oid relid);

// The OIDs of the filters that name this one as their parent, or as any ancestor, and whose owners
// have rights on it.
List* find_children(Oid relid);
// A step of kCatalogSteps.
void on_foreign_table_change(Datum, SF_SYSCACHE_ID, uint32);
List* find_descendants(Oid relid);

// Has it a parent, or children?
bool is_in_tree(Oid relid);

// Reads a filter relation into the current memory context: what read_filter_relation reads, and its
// parent, level and seed in its tree, as far as they are known. nullptr: there is a fault, of its
// own or of an ancestor whose seed it takes.
FilterRelation* try_load_filter_relation(Oid relid, Fault& fault);

// The same for a caller that has the filter locked for use: raises the fault.
FilterRelation* load_filter_relation(Oid relid);

// The same for a row of a view: nullptr without a fault if it is no filter, or none any more.
FilterRelation* show_filter_relation(Oid relid, Fault& fault);

// Raises unless there is a way from the filter up to a root: 42P01 the parent does not exist, 42809
// it is no filter, 42P17 the filter is its own ancestor. The second may be reported on other
// levels.
void check_way_up(const FilterRelation* relation);
void report_missing_parent(int level, const FilterRelation* relation);

// Does a filter fit its parent: kind, size, options, key columns, seed? Reports 42P17 if not, with
// what differs.
void check_fit(int level, const FilterRelation* relation, const FilterRelation* parent);

// The owner of a filter must have INSERT and SELECT on its parent. Reports 42501.
bool has_rights_on_parent(Oid relid, Oid parent);
void check_rights_on_parent(int level, const FilterRelation* relation,
                            const FilterRelation* parent);

}  // namespace streamfilter::pg
