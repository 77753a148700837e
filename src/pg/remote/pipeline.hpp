// Commands to other servers and their answers. A connection is always in pipeline mode: commands
// are queued, sent together, and answered together. Nothing here waits longer than the server's
// timeouts.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// How to wait: callbacks at commit and abort neither raise nor serve interrupts.
enum class Manner : uint8 { interruptible, quiet };

// Waits for the socket, a while at most. False: the time is over. Otherwise the caller looks again.
bool wait_for_socket(PGconn* pg, bool write, TimestampTz deadline, Manner manner);

// Ends what has been queued, and sends it. False: lost.
bool send_queued(Connection* connection, Manner manner);

// Reads the answers to what was sent and shows the visitor, which must not raise, each with the
// number of its command; but the first error is kept in `error`. False: lost. Interrupts may raise
// in between; the connection stays busy then.
using ResultVisitor = void (*)(void* context, int number, const PGresult* result);
inline void ignore_result(void*, int, const PGresult*) {}
bool receive(Connection* connection, Manner manner, ResultVisitor visit = ignore_result,
             void* context = nullptr);

// Raises `error` as one of ours, with its SQLSTATE.
[[noreturn]] void raise_remote(Connection* connection);

}  // namespace streamfilter::pg
