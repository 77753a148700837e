// Whose code the statements of streamfilter_settle() would run in the caller's name.
#pragma once

#include "pg/settle/settle_query.hpp"

namespace streamfilter::pg {

// Call it within SPI, before any statement of the task is planned: that runs constant parts of
// expressions. Raises 42501 if a type, cast, comparison or index that the statements use belongs to
// a role that is neither the caller nor a superuser. Triggers, defaults, generated columns,
// partition keys and CHECK constraints of the two tables are not looked at: they run as for any
// DELETE and INSERT.
void check_code_of_settling(const SettleTask* task, bool since);

}  // namespace streamfilter::pg
