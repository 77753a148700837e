#pragma once

#include "pg/binding/trigger_definition.hpp"
#include "pg/server/hooks.hpp"

// Checks the definition of a trigger that calls streamfilter_forget.

namespace streamfilter::pg {

// Raises 39P01 unless it is AFTER DELETE or UPDATE FOR EACH ROW, or AFTER TRUNCATE.
void check_forget_event(const Trigger* trigger, Relation table);

// The columns of the keys; nullptr for TRUNCATE, which needs none. Raises 0A000 if the filter
// cannot forget single keys, and the errors of make_plan.
TriggerPlan* plan_forgetting(const Trigger* trigger, Relation table, const FilterRelation* filter);

// The step for queries that change tables, last before PostgreSQL: lets them forget keys before
// they insert rows with the same ones.
void forget_first(RunCall* call);

}  // namespace streamfilter::pg
