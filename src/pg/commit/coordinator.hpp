// The one place that the server calls when a transaction ends, begins or ends a savepoint, is
// prepared or finished: coordinator.cpp has every phase, in order.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Registers for ends of transactions and savepoints. Called by _PG_init.
void init_coordinator();

// Steps of hooks. Before each statement: messages that had to wait are sent, and filters that
// others want are handed over. Innermost: COMMIT PREPARED and ROLLBACK PREPARED have then ended
// when others look.
void follow_transaction(UtilityCall* call);
void begin_query(StartCall* call);

}  // namespace streamfilter::pg
