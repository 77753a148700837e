// How a connection comes to stand. What happens to one connection says nothing of its server:
// another is tried at once. A server is unreachable when no connection to it comes to stand in
// time, or when it does not answer; who still has a connection goes on using it. While it is
// unreachable, sessions without one try now and then, but wait only a moment: such an attempt goes
// on in the background while keys are answered without the server.
//
// A server that refuses (password, database, no room for another connection) is there, and its
// refusal is an error.
#pragma once

#include "pg/remote/protocol.hpp"

namespace streamfilter::pg {

// Makes a connection ready. False: the server is unreachable, and this session has been told so.
// Raises 08001 and what the server says if it refuses, 2F003 where a password is required, 08006 if
// the transaction has changed filters there on a connection that is gone while the server is not:
// it must not commit without its keys.
bool ensure_connected(Connection* connection);

// Begins at once with all connections that are wanting, and waits until each stands or has failed,
// for as long as ensure_connected would wait for one of them. That tells what has come of it.
void connect_together(Connection** connections, int count);

// So often in a row something is tried on a new connection, each time because the last one has
// ended.
constexpr int kMaxAttempts = 5;
// Raises 08006: that was in vain.
[[noreturn]] void raise_always_ends(const Connection* connection);

// Before the transaction commits: what is owed is read, what is rolled back here is rolled back
// there, and every connection still stands. Raises as above, and 08006 if keys were deleted on a
// server that is unreachable now. What this transaction commits is flushed before the servers hear
// of it.
void prepare_remote_commit();

}  // namespace streamfilter::pg
