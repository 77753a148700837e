// Queries that set-returning functions run for the user: one SELECT, read by a cursor in batches.
#pragma once

extern "C" {
#include "utils/portal.h"
}

namespace streamfilter::pg {

// Prepares the query and opens a cursor; SPI must be connected. Raises 34000 unless it is one
// SELECT that changes nothing, not even in WITH; the message names `function`.
Portal open_query(const char* query, const char* function);

// The planner's estimate of its rows.
uint64 expected_rows(Portal portal);

}  // namespace streamfilter::pg
