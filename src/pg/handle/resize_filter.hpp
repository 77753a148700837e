// ALTER that gives a filter another size: the new state takes over what the former one knows.
// sql/resize_call.cpp does it while rows come.
#pragma once

#include "core/base/status.hpp"
#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// For a filter whose definition this transaction has just altered, so that its latest state does
// not fit any more. False: what it knows cannot be kept, `problem` says why; or there is nothing to
// keep. The state is this transaction's until it commits; of a logged filter it is saved then.
// Raises 53200, 53400 where there is no room for both.
bool resize_filter(const FilterRelation* relation, Problem& problem);

// The steps of it. Parameters for the definition that take over the state of `former`, which has
// those of `from`; false as above.
bool resized_parameters(const FilterRelation* relation, const FilterSlot* former,
                        const Parameters& from, Parameters* parameters, Problem& problem);
// What the slot of the new state goes on with, and how it is saved.
void take_over_counts(FilterSlot* slot, const FilterSlot* former);
void begin_saved(FilterSlot* slot, const FilterRelation* relation, const Parameters& parameters);
// A WARNING if the state is too full for what is promised.
void warn_of_rate(const FilterRelation* relation, const Header* header);

}  // namespace streamfilter::pg
