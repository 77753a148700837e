// A trigger on a table that has rows, by a filter that knows nothing: repeats of these rows pass.
#pragma once

#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// Says how to fill the filter, unless the transaction has used filters: it may be filling it.
void hint_to_fill(const Trigger* trigger, Relation table, const TriggerPlan* plan,
                  const FilterRelation* filter);

}  // namespace streamfilter::pg
