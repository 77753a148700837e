// The one place that the server calls when a transaction ends, begins or ends a savepoint, is
// prepared or finished: coordinator.cpp has every phase, in order.
#pragma once

namespace streamfilter::pg {

// Registers for all of it. Called by _PG_init.
void init_coordinator();

}  // namespace streamfilter::pg
