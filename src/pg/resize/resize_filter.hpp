// ALTER of a filter's size: the new state takes over the keys of the former one.
// resize/resize_call.cpp does so while rows come.
#pragma once

#include "pg/catalog/filter_relation.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// Call for a filter whose definition this transaction has just altered so that its latest state
// does not fit. False: the keys cannot be kept, for the reason in `problem`, or there are none. The
// new state belongs to this transaction until commit, which saves it if the filter is logged.
// Raises 53200, 53400 without room for both states.
bool resize_filter(const FilterRelation* relation, Problem& problem);

// Does the altered definition ask for the state that there is? `before`: what it derived before the
// ALTER, or nullptr. A state that was resized is not quite what its definition derives.
bool is_state_wanted(const FilterRelation* relation, const FilterSlot* former,
                     const Parameters* before);

// Steps of resize_filter. Derives parameters for the definition that can take over the state of
// `former`, which has those of `from`; false as above.
bool resized_parameters(const FilterRelation* relation, const FilterSlot* former,
                        const Parameters& from, Parameters* parameters, Problem& problem);
// Copies counts and persistence to the slot of the new state.
void take_over_counts(FilterSlot* slot, const FilterSlot* former);
void begin_saved(FilterSlot* slot, const FilterSlot* former, const FilterRelation* relation);
// Warns if the state is too full for the promised rate, with a size, if there is one, in which it
// or the former state keeps it.
void warn_of_rate(const FilterRelation* relation, const Header* former, const Header* header);

}  // namespace streamfilter::pg
