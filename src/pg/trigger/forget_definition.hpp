// What a trigger of streamfilter_forget is meant to do, by its definition.
#pragma once

#include "pg/trigger/trigger_definition.hpp"

namespace streamfilter::pg {

// Raises 39P01 unless it is AFTER DELETE or UPDATE FOR EACH ROW, or AFTER TRUNCATE.
void check_forget_event(const Trigger* trigger, Relation table);

// Which columns its keys are of; nullptr for TRUNCATE, which needs none. Raises 0A000 if the filter
// cannot forget single keys, and what make_plan does.
TriggerPlan* plan_forgetting(const Trigger* trigger, Relation table, const FilterRelation* filter);

}  // namespace streamfilter::pg
