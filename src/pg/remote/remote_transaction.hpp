// Transactions on other servers. One begins there when this transaction first changes a filter
// there, with a savepoint for each one here, and commits after this one. A key must not be
// remembered before its row is safe: if the commit there fails, the key is only forgotten.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// Queues what brings a ready connection to the state of the current (sub)transaction. False: the
// connection has failed.
bool queue_transaction(Connection* connection);

// Then queues a savepoint in which no lock wait is long. What follows must be one message. The
// second function undoes it, for several connections at once; any other later command keeps it.
bool queue_savepoint_with_timeout(Connection* connection);
void undo_savepoints_with_timeout(Connection** connections, int count);

// Reads owed answers after a statement was cancelled, and rolls back there what is rolled back
// here. False: the connection has failed.
bool settle(Connection* connection);

// The functions below are called by the coordinator (pg/commit). Only the refusal raises, and none
// waits longer than the servers' timeouts.

// Commits or rolls back on the servers as here. A connection that fails is lost.
void commit_remote_transactions();
void roll_back_remote_transactions();

// Has the connection lost this transaction's changes there? Valid until end_remote_transactions,
// which warns of it after a commit.
inline bool lost_changes(const Connection* connection) {
  return connection->lost && connection->changed;
}
void end_remote_transactions(bool committed);

// Raises 0A000 if the transaction has changed filters on other servers.
void refuse_to_prepare_remote_transactions();

// Call at the end of the current subtransaction.
void keep_remote_savepoint();
void roll_back_remote_savepoint();

}  // namespace streamfilter::pg
