// Watching DDL: definitions are checked when they are made, and state goes when its filter goes.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Refuses what may not be altered or dropped, and reads back what ALTER needs to know.
void check_before_ddl(UtilityCall* call);

// Notices DROP of a filter, a database or a trigger.
void watch_objects(AccessCall* call);

}  // namespace streamfilter::pg
