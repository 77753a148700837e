// What CREATE, ALTER, DROP and TRUNCATE of filters mean for the trees they belong to.
#pragma once

#include "pg/catalog/filter_relation.hpp"

struct List;

namespace streamfilter::pg {

// After CREATE or ALTER of a filter: checks that it fits its parent (one that is missing, or on
// which its owner has no rights yet, is a WARNING, so that a dump restores in any order) and that
// its children still fit it (WARNING), makes it depend on its parent, and lets everybody look at
// the tree again. Raises what tree.hpp's checks do.
void check_tree(const FilterRelation* relation);

// After the filter has got another name or schema: WARNING if its children name the old one.
void warn_of_lost_children(Oid relid);

// Before a filter goes: lets everybody look at its tree again.
void leave_tree(Oid relid);

// WARNING if filters are emptied whose children go on remembering: `truncated` are the OIDs of all.
void warn_of_remembering_children(Oid relid, List* truncated);

}  // namespace streamfilter::pg
