// Are rows new, or were they accepted before?
#pragma once

extern "C" {
#include "replication/logicalworker.h"
#include "utils/guc.h"
}

namespace streamfilter::pg {

// Is a dump being restored, or a table copied by a subscription? Setting check_function_bodies
// tells, which pg_dump turns off so that function bodies are not checked.
inline bool is_restoring() { return !check_function_bodies || IsLogicalWorker(); }

}  // namespace streamfilter::pg
