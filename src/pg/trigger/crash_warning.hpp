// Rows of a table and keys of its filter should share their fate.
#pragma once

extern "C" {
#include "utils/rel.h"
}

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// A WARNING if a crash, or the end of a session, empties one of the two and not the other.
void warn_of_crash(Relation table, const FilterRelation* filter);

}  // namespace streamfilter::pg
