// Queries that set-returning functions run for the user: one SELECT, read by a cursor in batches.
#pragma once

extern "C" {
#include "utils/portal.h"
}

namespace streamfilter::pg {

// Prepares the query and opens a cursor for it; SPI must be connected. Raises 34000 unless it is
// one SELECT that changes nothing, not in WITH either; `function` names the caller in that message.
Portal open_query(const char* query, const char* function);

// How many rows the planner expects of it.
uint64 expected_rows(Portal portal);

}  // namespace streamfilter::pg
