// ALTER that gives a filter another size: the new state takes over what the former one knows.
#pragma once

#include "core/base/status.hpp"
#include "pg/catalog/filter_relation.hpp"

namespace streamfilter::pg {

// For a filter whose definition this transaction has just altered, so that its state does not fit
// any more. False: what it knows cannot be kept, `problem` says why; or there is nothing to keep.
// The state is this transaction's until it commits; of a logged filter it is saved by it. Raises
// 53200, 53400 where there is no room for both.
bool resize_filter(const FilterRelation* relation, Problem& problem);

// The definition is again what it was before this transaction resized the filter: what is saved
// must be the former state again, too. In an event trigger of ALTER, which has locked the relation.
void take_back_resizing(const FilterRelation* relation);

}  // namespace streamfilter::pg
