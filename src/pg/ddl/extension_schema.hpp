// ALTER EXTENSION streamfilter SET SCHEMA. PostgreSQL moves an extension only if all its members
// are in one schema; the internals, which are in another one, move along and come back.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

void move_extension(UtilityCall* call);

}  // namespace streamfilter::pg
