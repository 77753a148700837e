// The only callbacks for ends of transactions and savepoints, PREPARE and COMMIT PREPARED.
// coordinator.cpp lists every phase in order.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Registers the callbacks. Called by _PG_init.
void init_coordinator();

// Steps of hooks. Before each statement: sends deferred messages, and hands over filters that
// others want. Innermost: when COMMIT PREPARED or ROLLBACK PREPARED returns, others see its end.
void follow_transaction(UtilityCall* call);
void begin_query(StartCall* call);

}  // namespace streamfilter::pg
