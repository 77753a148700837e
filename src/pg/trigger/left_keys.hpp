// Keys whose rows have left a table that does not tell its filter.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Steps that say so, with what helps, after a DELETE and after a TRUNCATE.
void hint_after_delete(RunCall* call);
void hint_after_truncate(UtilityCall* call);

}  // namespace streamfilter::pg
