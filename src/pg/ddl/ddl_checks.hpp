// Watches DDL: checks definitions when they are made, and frees state when its filter is dropped.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Refuses what may not be altered or dropped, and restores filters that ALTER must know.
void check_before_ddl(UtilityCall* call);

// Notices DROP of a filter, a database or a trigger.
void watch_objects(AccessCall* call);

}  // namespace streamfilter::pg
