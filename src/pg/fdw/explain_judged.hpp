// Lets EXPLAIN ANALYZE tell what filters have done with the rows.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

void explain_judged_rows(ExplainCall* call);

}  // namespace streamfilter::pg
