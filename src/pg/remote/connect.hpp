// Establishes connections. If a single connection ends, another is tried at once. A server is
// unreachable when no connection is established in time, or no answer comes; sessions that still
// have a connection keep using it. Sessions without one retry now and then but wait only a moment:
// the attempt goes on in the background while keys are answered without the server.
//
// A server that refuses (password, database, connection limit) is reachable, and its refusal is an
// error.
#pragma once

#include "pg/remote/protocol.hpp"

namespace streamfilter::pg {

// Makes a connection ready. False: the server is unreachable, and this session has been warned.
// Raises 08001 with the server's message if it refuses, 2F003 if a password is required, and 08006
// if the connection on which this transaction has changed filters is gone while the server is
// reachable: the transaction must not commit without its keys.
bool ensure_connected(Connection* connection);

// Starts all missing connections at once, and waits until each is established or has failed, as
// long as ensure_connected would wait for one. Call ensure_connected for the results.
void connect_together(Connection** connections, int count);

// Attempts in a row on new connections, when each one before has ended.
constexpr int kMaxAttempts = 5;
// Raises 08006 after that.
[[noreturn]] void raise_always_ends(const Connection* connection);
// Repeats `ask` on a new connection while it says that the one before has failed. False: the server
// is unreachable.
template <typename Ask>
bool ask_again_if_ended(Connection* connection, Ask&& ask) {
  for (int i = 0; i < kMaxAttempts; ++i) {
    if (!ensure_connected(connection)) return false;
    if (ask()) return true;
  }
  raise_always_ends(connection);
}

// Call before the transaction commits: reads owed answers, rolls back on the servers what is rolled
// back here, and checks all connections. Raises as above, and 08006 if keys were deleted on a
// server that is now unreachable. What this transaction commits is flushed before the servers hear
// of it.
void prepare_remote_commit();

}  // namespace streamfilter::pg
