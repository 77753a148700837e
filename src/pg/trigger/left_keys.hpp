// Deleted rows leave their keys in the filter unless a trigger forgets them, so the same rows are
// discarded when they return. A NOTICE says so once per session and filter.
#pragma once

extern "C" {
#include "executor/execdesc.h"
#include "nodes/parsenodes.h"
}

namespace streamfilter::pg {

// Call after a query, and after a TRUNCATE.
void hint_after_delete(const QueryDesc* query);
void hint_after_truncate(const TruncateStmt* statement);

}  // namespace streamfilter::pg
