// Plans that throw rows away above `NOT streamfilter_seen(…)`: the filter has remembered them, so
// nobody gets them again. There is a WARNING when such a query is planned.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Outside of other steps of the planner: it looks at the plan as the server makes it.
PlannedStmt* look_for_lost_rows(PlannerCall* call);

// EXPLAIN plans a query for nobody.
void note_explain(UtilityCall* call);

}  // namespace streamfilter::pg
