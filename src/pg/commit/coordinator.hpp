// What happens at the ends of transactions and savepoints, PREPARE and COMMIT PREPARED.
// coordinator.cpp lists every phase in order.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// PostgreSQL's callbacks.
void at_transaction_end(XactEvent event, void*);
void at_subtransaction_end(SubXactEvent event, SubTransactionId subtransaction,
                           SubTransactionId parent, void*);

// Steps of hooks. Before each statement: sends deferred messages, and hands over filters that
// others want. Innermost: when COMMIT PREPARED or ROLLBACK PREPARED returns, others see its end.
void follow_transaction(UtilityCall* call);
void begin_query(StartCall* call);

}  // namespace streamfilter::pg
