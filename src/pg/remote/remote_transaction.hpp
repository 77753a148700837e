// Transactions on other servers. One is begun there when this transaction first changes a filter
// there, with a savepoint for every one here; it commits after this one has. A key must not be
// remembered before its row is safe: if the commit there fails, the key is merely forgotten.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// Queues what brings a ready connection to the state of the current (sub)transaction. False: it has
// failed.
bool queue_transaction(Connection* connection);

// Reads what is owed after a statement was cancelled, and rolls back there what is rolled back
// here. False: the connection has failed.
bool settle(Connection* connection);

// Registers the callbacks. Called once per backend.
void init_remote_transactions();

}  // namespace streamfilter::pg
