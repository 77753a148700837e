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

// ALTER TYPE ... RENAME VALUE. Keys have the hashes of their labels, because OIDs of enum values
// differ between databases.

// Call after a statement: raises 0A000 if it has renamed a label of an enum that a filter's key
// contains, or that a trigger of ours casts to a key.
void check_renamed_label(Node* statement);

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
