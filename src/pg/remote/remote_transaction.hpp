// Transactions on other servers. One is begun there when this transaction first changes a filter
// there, with a savepoint for every one here; it commits after this one has. A key must not be
// remembered before its row is safe: if the commit there fails, the key is merely forgotten.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// Queues what brings the connection to the state of the current (sub)transaction; returns how many
// commands that takes. The connection stands and is not busy.
int queue_transaction(Connection* connection);

// Registers the callbacks. Called once per backend.
void init_remote_transactions();

}  // namespace streamfilter::pg
