// ALTER that gives a filter another size: the new state takes over what the former one knows.
#pragma once

#include "core/base/status.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// For a filter whose definition this transaction has just altered, so that its latest state does
// not fit any more. False: what it knows cannot be kept, `problem` says why; or there is nothing to
// keep. The state is this transaction's until it commits; of a logged filter it is saved then.
// Raises 53200, 53400 where there is no room for both.
bool resize_filter(const FilterRelation* relation, Problem& problem);

}  // namespace streamfilter::pg
