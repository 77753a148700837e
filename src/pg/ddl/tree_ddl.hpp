// Effects of CREATE, ALTER, DROP and TRUNCATE of filters on their trees.
#pragma once

#include "pg/catalog/filter_relation.hpp"

struct List;

namespace streamfilter::pg {

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
