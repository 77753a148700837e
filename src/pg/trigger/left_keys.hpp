// Keys whose rows have left a table that does not tell its filter.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Steps that track the running statement, and say what helps after a DELETE and after a TRUNCATE;
// before a query also prepare_to_write().
void run_query(RunCall* call);
void run_utility(UtilityCall* call);

}  // namespace streamfilter::pg
