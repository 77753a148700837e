// A table's rows and its filter's keys should survive, or not survive, a crash together.
#pragma once

extern "C" {
#include "utils/rel.h"
}

#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// Warns if a crash, or the end of the session, empties either the table or the filter, but not
// both.
void warn_of_crash(Relation table, const FilterRelation* filter);

}  // namespace streamfilter::pg
