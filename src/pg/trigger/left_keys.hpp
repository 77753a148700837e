// Rows that go leave their keys behind, unless a trigger forgets them: from then on the same rows
// are discarded. A session is told once of each filter, with what to type.
#pragma once

extern "C" {
#include "executor/execdesc.h"
#include "nodes/parsenodes.h"
}

namespace streamfilter::pg {

// A query has run; a TRUNCATE has.
void hint_after_delete(const QueryDesc* query);
void hint_after_truncate(const TruncateStmt* statement);

}  // namespace streamfilter::pg
