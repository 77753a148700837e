// Watches DDL: checks definitions when they are made, and frees state when its filter is dropped.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/server/hooks.hpp"

struct Node;
struct List;

namespace streamfilter::pg {

// Refuses what may not be altered or dropped, and restores filters that ALTER must know.
void check_before_ddl(UtilityCall* call);

// Notices DROP of a filter, a database or a trigger.
void watch_objects(AccessCall* call);

// Call after a statement: one that alters labels of an enum keeps the identity of its values.
// Raises 0A000 if other servers know the renamed label. A WARNING says that a filter's key has
// other hashes: another operator class, or rows with other columns.
void check_altered_type(Node* statement);

// Effects of CREATE, ALTER, DROP and TRUNCATE of filters on their trees.

// Call after CREATE or ALTER of a filter: checks that it fits its parent (a missing one, or missing
// rights, are a WARNING, so that dumps restore in any order) and that its children still fit it
// (WARNING), makes it depend on its parent, and lets all sessions look at the tree again. Raises
// the errors of tree.hpp's checks.
void check_tree(const FilterRelation* relation);

// Call after the filter was renamed or moved: warns if its children name it by the old name.
void warn_of_lost_children(Oid relid);

// Call before a filter is dropped: lets all sessions look at its tree again.
void leave_tree(Oid relid);

// Warns if filters are emptied whose children still remember keys: `truncated` has the OIDs of all.
void warn_of_remembering_children(Oid relid, List* truncated);

}  // namespace streamfilter::pg
