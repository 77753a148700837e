// Which INSERTs are planned with a node that inserts in batches.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

PlannedStmt* plan_insert(PlannerCall* call);

}  // namespace streamfilter::pg
