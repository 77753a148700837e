#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// On a standby: applies what has been replayed since the last look.
void follow_log(FilterSlot* slot, const FilterRelation* relation);

}  // namespace streamfilter::pg
