// Commands to other servers and their answers. A connection is always in pipeline mode: commands
// are queued, sent together, and answered together. Nothing here waits longer than the server's
// timeouts, and no answer is taken that wire_answers.hpp does not foresee.
#pragma once

#include "pg/remote/connection.hpp"
#include "pg/remote/wire_answers.hpp"

namespace streamfilter::pg {

// How to wait: callbacks at commit and abort neither raise nor serve interrupts.
enum class Manner : uint8 { interruptible, quiet };
constexpr int kGlance = 100;  // ms, until a quiet wait looks whether the session is to end

// Nobody waits for servers in a session that is told to end; that says nothing of them.
bool is_leaving(Manner manner);

// Milliseconds until then, at least 0.
int time_left(TimestampTz deadline);

// Waits for the socket, a while at most. False: the time is over. Otherwise the caller looks again.
bool wait_for_socket(PGconn* pg, bool write, TimestampTz deadline, Manner manner);

// Queues a command, or a query with one parameter. False: the connection has failed.
bool queue_command(Connection* connection, const char* command);
bool queue_query(Connection* connection, const char* query, const char* parameter);

// Of its timeout, for each server, whatever others have cost.
constexpr int kLeastShare = 8;

// Ends what has been queued, and sends it, as far as the other side takes it at once; the rest goes
// while its answers are waited for. Its timeout runs from `start`; 0: from now. False: the
// connection has failed.
bool send_queued(Connection* connection, TimestampTz start = 0);

// Waits for all of these connections at once until each begins to answer what was sent, or has
// failed: what receive() is called for then is there. Those that are not busy do not count.
void wait_together(Connection* const* connections, int count, Manner manner);

// Reads the answers to what was sent and shows the visitor, which must not raise, each but errors;
// the first error is kept in `error`. `rows` is the shape of those that one command returns;
// nullptr: none does. False: the connection has failed; a server that breaks the protocol is left,
// and raises 08P01 unless quiet. Interrupts may raise in between; the connection stays busy then.
using ResultVisitor = void (*)(void* context, const PGresult* result);
inline void ignore_result(void*, const PGresult*) {}
bool receive(Connection* connection, Manner manner, const RowShape* rows = nullptr,
             ResultVisitor visit = ignore_result, void* context = nullptr);

// Both, interruptibly. What other servers that hang have cost since forget_lost_time is taken off
// its timeout, but for an eighth, so that several cost hardly more than one.
void forget_lost_time();
bool exchange(Connection* connection, const RowShape* rows = nullptr,
              ResultVisitor visit = ignore_result, void* context = nullptr);

// Reads what is still owed after an interrupt, as far as it is there already, or all of it. False:
// the connection has failed.
bool read_owed(Connection* connection);
bool drain(Connection* connection);

// Raises `error` as one of ours, with its SQLSTATE.
[[noreturn]] void raise_remote(Connection* connection);

// Raises 08P01; the connection is closed.
[[noreturn]] void raise_protocol_violation(Connection* connection, const char* what);

}  // namespace streamfilter::pg
