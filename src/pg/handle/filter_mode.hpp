// The mode for rows that a filter judges: its option, or a setting of the session.
#pragma once

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// `overridden` says that the mode comes from a setting.
FilterMode mode_in_use(const FilterRelation* relation, bool* overridden);

// Raises 42501 if the role that set streamfilter.mode may not decide on rows of this filter. In a
// trigger the table's owner may, too; InvalidOid if there is no table.
void check_override(const FilterRelation* relation, FilterMode mode, Oid table_owner);

}  // namespace streamfilter::pg
