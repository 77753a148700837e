#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/guc.h"
}

#include <climits>

#include "pg/server/settings.hpp"

namespace streamfilter::pg {

int shared_memory_kb = 256 * 1024;
int max_filters = 128;
int max_in_flight = 100000;
bool enabled = true;
bool batch_scan = true;

void init_settings() {
  DefineCustomBoolVariable("streamfilter.enabled", "Lets triggers discard or mark repeated rows.",
                           "If off, triggers let every row pass and remember nothing.", &enabled,
                           true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("streamfilter.batch_scan",
                           "Reads rows ahead where a scan is filtered by NOT streamfilter_seen().",
                           "The result is the same; keys are judged one by one all the same.",
                           &batch_scan, true, PGC_USERSET, 0, nullptr, nullptr, nullptr);
  // The others size shared memory: only a preloaded library can define them.
  if (process_shared_preload_libraries_in_progress) {
    DefineCustomIntVariable("streamfilter.shared_memory",
                            "Memory reserved at server start for named filters.", nullptr,
                            &shared_memory_kb, 256 * 1024, 64, INT_MAX, PGC_POSTMASTER, GUC_UNIT_KB,
                            nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "streamfilter.max_filters", "Largest number of named filters in shared memory.", nullptr,
        &max_filters, 128, 1, 65536, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "streamfilter.max_in_flight", "Largest number of keys of unfinished transactions.", nullptr,
        &max_in_flight, 100000, 1000, 100000000, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  }
  MarkGUCPrefixReserved("streamfilter");
}

}  // namespace streamfilter::pg
