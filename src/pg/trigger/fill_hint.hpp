// An empty filter on a table with rows: repeats of these rows would pass.
#pragma once

#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// Prints the statement that fills the filter, unless the transaction has used filters and so may be
// filling it.
void hint_to_fill(const Trigger* trigger, Relation table, const TriggerPlan* plan,
                  const FilterRelation* filter);

}  // namespace streamfilter::pg
