// Commands to other servers and their answers. Connections are always in pipeline mode: commands
// are queued, sent together, and answered together. No wait exceeds the server's timeouts, and
// answers that wire_answers.hpp does not foresee are refused.
#pragma once

#include <initializer_list>

#include "pg/remote/connection.hpp"
#include "pg/remote/wire_answers.hpp"

namespace streamfilter::pg {

// How to wait. Callbacks at commit and abort neither raise nor serve interrupts.
enum class Manner : uint8 { interruptible, quiet };
constexpr int kGlance = 100;  // ms between two looks of a quiet wait whether the session is to end

// Is the session told to end? Then it waits for no server, and draws no conclusions about them.
bool is_leaving(Manner manner);

// Milliseconds until then, at least 0.
int time_left(int64 deadline);

// Waits a while for the socket. False: the deadline has passed. Otherwise the caller looks again.
bool wait_for_socket(PGconn* pg, bool write, int64 deadline, Manner manner);

// Queues a command, with parameters in text form. False: the connection has failed.
bool queue_command(Connection* connection, const char* command,
                   std::initializer_list<const char*> values = {});

// Each server gets at least 1/8 of its timeout, however long others have taken.
constexpr int kLeastShare = 8;

// Ends the queue and sends as much as the server takes at once; the rest follows while waiting for
// answers. A server whose answers have more bytes than `row_bytes` and kMaxUnforeseen counts as
// lost. The timeout runs from `start`; 0: from now. False: the connection has failed.
bool send_queued(Connection* connection, uint64 row_bytes = 0, int64 start = 0);

// Waits for all these connections at once, until each begins to answer or has failed. Ignores
// connections that are not busy.
void wait_together(Connection* const* connections, int count, Manner manner);

// Reads the answers to what was sent. Passes each except errors to the visitor, which must not
// raise; keeps the first error in `error`. `rows` is the shape of rows that one command returns;
// nullptr: none does. False: the connection has failed; a server that breaks the protocol is
// disconnected, and raises 08P01 unless quiet. Interrupts may raise in between; the connection then
// stays busy.
using ResultVisitor = void (*)(void* context, const PGresult* result);
inline void ignore_result(void*, const PGresult*) {}
bool receive(Connection* connection, Manner manner, const RowShape* rows = nullptr,
             ResultVisitor visit = ignore_result, void* context = nullptr);

// Keeps the first column of a row, with a NUL behind it.
struct ReceivedValue {
  char* bytes;  // nullptr, though found: out of memory
  int length;
  bool found;
};
void take_value(void* received, const PGresult* result);
// Raises 53200 where memory was missing.
void check_memory(const ReceivedValue& received);

// Sends and receives, interruptibly. Time that other hung servers have taken since forget_lost_time
// is subtracted from the timeout, except for an eighth, so that several hung servers cost hardly
// more than one.
void forget_lost_time();
bool exchange(Connection* connection, const RowShape* rows = nullptr,
              ResultVisitor visit = ignore_result, void* context = nullptr);

// Reads owed answers after an interrupt: those that have come, or all. False: the connection has
// failed.
bool read_owed(Connection* connection);
bool drain(Connection* connection);

// Does the server end the connection with this message?
bool is_fatal(const PGresult* result);
bool has_sqlstate(const PGresult* error, int wanted);

// Of what a pooler says that does not keep sessions apart.
constexpr char kPoolerHint[] =
    "pgbouncer needs pool_mode = session and ignore_startup_parameters = options.";
// Has it lost a prepared statement, or another session's?
inline bool is_of_pooler(const PGresult* error) {
  return has_sqlstate(error, ERRCODE_INVALID_SQL_STATEMENT_NAME) ||
         has_sqlstate(error, ERRCODE_DUPLICATE_PSTATEMENT);
}

// Raises `error` as our own, with its SQLSTATE.
[[noreturn]] void raise_remote(Connection* connection);

// Raises 08P01 after closing the connection.
[[noreturn]] void raise_protocol_violation(Connection* connection, const char* what);

}  // namespace streamfilter::pg
