#include "pg/server/postgres.hpp"

extern "C" {
#include "replication/logicalworker.h"
#include "utils/guc.h"
}

#include "pg/server/restoring.hpp"

namespace streamfilter::pg {

bool is_restoring() { return !check_function_bodies || IsLogicalWorker(); }

}  // namespace streamfilter::pg
