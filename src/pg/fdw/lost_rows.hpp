// Warns, at planning, of plans that remove rows above `NOT streamfilter_seen(…)`: the filter has
// remembered them, so they are lost.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Runs outside of other planner steps, so that it sees PostgreSQL's own plan.
PlannedStmt* look_for_lost_rows(PlannerCall* call);

// EXPLAIN plans a query without returning its rows.
void note_explain(UtilityCall* call);

}  // namespace streamfilter::pg
