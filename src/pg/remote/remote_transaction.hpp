// Transactions on other servers. One is begun there when this transaction first changes a filter
// there, with a savepoint for every one here; it commits after this one has. A key must not be
// remembered before its row is safe: if the commit there fails, the key is merely forgotten.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// Queues what brings a ready connection to the state of the current (sub)transaction. False: it has
// failed.
bool queue_transaction(Connection* connection);

// Queues, after that, a savepoint within which no lock is waited for long. What follows must be of
// one message; it is undone by the second, for several connections at once, or kept by whatever
// comes next.
bool queue_hasty_savepoint(Connection* connection);
void undo_hasty_savepoints(Connection** connections, int count);

// A call has failed, and with it the transaction there: it is begun anew with what comes next.
// False: it has changed something, so that this transaction fails as well.
bool start_over(Connection* connection);

// Reads what is owed after a statement was cancelled, and rolls back there what is rolled back
// here. False: the connection has failed.
bool settle(Connection* connection);

// The rest is called by the coordinator (pg/commit); nothing but the refusal raises, or waits
// longer than the timeouts of the servers.

// Commits there what has been committed here, or rolls it back. A connection that fails is lost.
void commit_remote_transactions();
void roll_back_remote_transactions();

// Has the connection lost what this transaction has changed there? Until end_remote_transactions,
// which says so if the transaction has committed.
inline bool lost_changes(const Connection* connection) {
  return connection->lost && connection->changed;
}
void end_remote_transactions(bool committed);

// Raises 0A000 if the transaction has changed filters on other servers.
void refuse_to_prepare_remote_transactions();

// The current subtransaction ends.
void keep_remote_savepoint();
void roll_back_remote_savepoint();

}  // namespace streamfilter::pg
