#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// ---- what filters have done with the rows -------------------------------------------------------

// Lets EXPLAIN ANALYZE tell what filters have done with the rows.

void explain_judged_rows(ExplainCall* call);

}  // namespace streamfilter::pg
