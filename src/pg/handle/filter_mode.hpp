// Which mode counts for the rows that a filter judges: its option, or a setting of the session.
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// `overridden`: it is not the filter's own, but what somebody has set.
FilterMode mode_in_use(const FilterRelation* relation, bool* overridden);

// Raises 42501 if the role that set streamfilter.mode must not decide on rows of this filter. In a
// trigger, the owner of the table may decide, too; InvalidOid: there is no table.
void check_override(const FilterRelation* relation, FilterMode mode, Oid table_owner);

}  // namespace streamfilter::pg
