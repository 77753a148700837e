// ALTER EXTENSION streamfilter SET SCHEMA. The server moves an extension only while all that it
// consists of is in one schema; the internals, which are in another, go along and come back.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

void move_extension(UtilityCall* call);

}  // namespace streamfilter::pg
