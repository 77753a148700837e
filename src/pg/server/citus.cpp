#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/guc.h"
}

#include "pg/server/citus.hpp"

namespace streamfilter::pg {

bool is_citus_loaded() { return GetConfigOption("citus.version", true, false) != nullptr; }

uint64 shard_in_name(const char* name) {
  const char* separator = strrchr(name, '_');
  if (separator == nullptr || separator[1] < '1' || separator[1] > '9') return 0;
  char* end;
  const uint64 number = strtou64(separator + 1, &end, 10);
  return *end == '\0' ? number : 0;
}

}  // namespace streamfilter::pg
