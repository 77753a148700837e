#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>
}

#include "pg/remote/pipeline.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/wait_events.hpp"

namespace streamfilter::pg {
namespace {

long lost_time = 0;  // ms, see exchange()
// ---- results ----------------------------------------------------------------------------------

Reply reply_of(const PGresult* result) {
  switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK: return Reply::command;
    case PGRES_TUPLES_OK: return Reply::rows;
    case PGRES_PIPELINE_ABORTED: return Reply::skipped;
    case PGRES_PIPELINE_SYNC: return Reply::sync;
    case PGRES_FATAL_ERROR:
      // Errors of libpq itself have no SQLSTATE.
      return PQresultErrorField(result, PG_DIAG_SQLSTATE) != nullptr ? Reply::error : Reply::other;
    default: return Reply::other;
  }
}

// Adapts a result for wire_answers.hpp.
class ResultTable {
 public:
  explicit ResultTable(const PGresult* result) : result_(result) {}
  int rows() const { return PQntuples(result_); }
  int columns() const { return PQnfields(result_); }
  Oid type(int column) const { return PQftype(result_, column); }
  bool is_binary(int column) const { return PQfformat(result_, column) == 1; }
  bool is_null(int row, int column) const { return PQgetisnull(result_, row, column) != 0; }
  int length(int row, int column) const { return PQgetlength(result_, row, column); }

 private:
  const PGresult* result_;
};

// What is wrong with a result; nullptr: nothing.
const char* find_fault(const PGresult* result, AnswerSequence* sequence, const RowShape* rows) {
  const Reply reply = reply_of(result);
  if (!sequence->take(reply)) return "it gives an answer of a kind that was not asked for";
  if (reply == Reply::rows && !has_shape(ResultTable(result), *rows))
    return "its answer has not the rows and columns that were asked for";
  return nullptr;
}

void give_up(Connection* connection, Manner manner, const char* what) {
  const bool leaving = is_leaving(manner);
  lost_time += ms_until(connection->sent_at, monotonic_us());
  fail(connection, leaving ? Failure::ended : Failure::unreachable,
       leaving ? "the session was terminated before it had answered" : what);
}

// PQflush has left nothing (0), or something.
void note_flushed(Connection* connection, int left) {
  move_traffic(connection, left == 0 ? TrafficEvent::sent : TrafficEvent::held_up);
}

// Sends more, and reads what has come. False: the connection has failed.
bool advance(Connection* connection) {
  PGconn* pg = connection->pg;
  bool alive = false;
  const auto read = [&] {
    const int left = PQflush(pg);  // reads, too, while the server takes no more
    if (left >= 0) note_flushed(connection, left);
    alive = left >= 0 && PQconsumeInput(pg) != 0;
  };
  if (!read_within(&connection->inflow, pg, read)) return fail_of_flood(connection);
  if (!alive) return fail(connection);
  // Nobody reads notifications, so free them.
  while (PGnotify* notify = PQnotifies(pg)) PQfreemem(notify);
  return true;
}

// Continues a connection after a wait; `late`: it was the last wait. False: the connection has
// failed.
bool go_on(Connection* connection, Manner manner, bool late) {
  const bool sending = connection->traffic == Traffic::sending;
  if (!advance(connection)) return false;
  // The answer may have come while another server kept us waiting.
  if (!late || !PQisBusy(connection->pg)) return true;
  give_up(connection, manner,
          sending ? "it does not read what is sent" : "it does not answer in time");
  return false;
}

// Waits for more of an answer. False: the connection has failed.
bool wait_for_answer(Connection* connection, Manner manner) {
  while (PQisBusy(connection->pg)) {
    const bool late = !wait_for_socket(connection->pg, connection->traffic == Traffic::sending,
                                       connection->deadline, manner);
    if (!go_on(connection, manner, late)) return false;
  }
  return true;
}

constexpr int kMaxTogether = 64;  // connections; others are waited for in turns

// Waits a moment for one of the sockets, without serving interrupts.
void wait_quietly(Connection* const* waiting, int count, int ms) {
  pollfd sockets[kMaxTogether];
  for (int i = 0; i < count; ++i) {
    const int events = POLLIN | (waiting[i]->traffic == Traffic::sending ? POLLOUT : 0);
    sockets[i] = {PQsocket(waiting[i]->pg), static_cast<short>(events), 0};
  }
  pgstat_report_wait_start(wait_event(Wait::remote));
  poll(sockets, static_cast<nfds_t>(count), Min(ms, kGlance));
  pgstat_report_wait_end();
}

void wait_interruptibly(Connection* const* waiting, int count, int ms) {
  WaitEventSet* set = SF_CREATE_WAIT_EVENT_SET(count + 2);
  WaitEvent happened;
  AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
  AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
  for (int i = 0; i < count; ++i) {
    const int events =
        WL_SOCKET_READABLE | (waiting[i]->traffic == Traffic::sending ? WL_SOCKET_WRITEABLE : 0);
    AddWaitEventToSet(set, static_cast<uint32>(events), PQsocket(waiting[i]->pg), nullptr, nullptr);
  }
  WaitEventSetWait(set, ms, &happened, 1, wait_event(Wait::remote));
  FreeWaitEventSet(set);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

// The first connections that have not begun to answer, and their earliest deadline.
int collect_waiting(Connection* const* connections, int count, Connection** waiting,
                    int64* deadline) {
  int found = 0;
  for (int i = 0; i < count && found < kMaxTogether; ++i) {
    if (!is_busy(connections[i]) || !PQisBusy(connections[i]->pg)) continue;
    if (found == 0 || connections[i]->deadline < *deadline) *deadline = connections[i]->deadline;
    waiting[found++] = connections[i];
  }
  return found;
}

// Waits for the next answer; nullptr: the connection has failed. PQgetResult returns one NULL
// between results; a second NULL means that nothing is pending.
PGresult* next_result(Connection* connection, Manner manner) {
  for (int i = 0; i < 2; ++i) {
    if (!wait_for_answer(connection, manner)) return nullptr;
    if (PGresult* result = PQgetResult(connection->pg)) return result;
    if (PQstatus(connection->pg) == CONNECTION_BAD) break;
  }
  fail(connection);
  return nullptr;
}

bool refuse(Connection* connection, Manner manner, const char* what) {
  if (manner == Manner::interruptible) raise_protocol_violation(connection, what);
  fail(connection, Failure::ended, what);
  return false;
}

// Checks an answer, and passes it on or keeps it. False: the connection has failed.
bool take_result(Connection* connection, Manner manner, PGresult* result, AnswerSequence* sequence,
                 const RowShape* rows, ResultVisitor visit, void* context) {
  if (is_fatal(result) || PQstatus(connection->pg) == CONNECTION_BAD) {
    fail(connection, Failure::ended, PQresultErrorMessage(result));
    PQclear(result);
    return false;
  }
  if (const char* fault = find_fault(result, sequence, rows)) {
    PQclear(result);
    return refuse(connection, manner, fault);
  }
  const Reply reply = reply_of(result);
  if (reply == Reply::error) {
    connection->error = result;
    return true;
  }
  if (reply == Reply::command || reply == Reply::rows) visit(context, result);
  PQclear(result);
  return true;
}

char* clean_field(const PGresult* result, int field) {
  const char* text = PQresultErrorField(result, field);
  return text != nullptr ? clean_peer_text(text) : nullptr;
}

}  // namespace

// ---- sending and receiving ----------------------------------------------------------------------

bool is_leaving(Manner manner) {
  return manner == Manner::quiet && (ProcDiePending || proc_exit_inprogress);
}

int time_left(int64 deadline) { return static_cast<int>(ms_until(monotonic_us(), deadline)); }

bool wait_for_socket(PGconn* pg, bool write, int64 deadline, Manner manner) {
  const int left = time_left(deadline);
  if (left <= 0) return false;
  if (manner == Manner::quiet) {
    pollfd ready = {PQsocket(pg), static_cast<short>(POLLIN | (write ? POLLOUT : 0)), 0};
    pgstat_report_wait_start(wait_event(Wait::remote));
    const bool is_ready = poll(&ready, 1, Min(left, kGlance)) > 0;
    pgstat_report_wait_end();
    return is_ready || !is_leaving(manner);
  }
  const int events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | WL_SOCKET_READABLE |
                     (write ? WL_SOCKET_WRITEABLE : 0);
  const int happened =
      WaitLatchOrSocket(MyLatch, events, PQsocket(pg), left, wait_event(Wait::remote));
  if (happened & WL_LATCH_SET) ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  return true;
}

bool queue_command(Connection* connection, const char* command,
                   std::initializer_list<const char*> values) {
  return PQsendQueryParams(connection->pg, command, static_cast<int>(values.size()), nullptr,
                           values.begin(), nullptr, nullptr, 0) == 1 ||
         fail(connection);
}

bool send_queued(Connection* connection, uint64 row_bytes, int64 start) {
  PGconn* pg = connection->pg;
  PQclear(connection->error);
  connection->error = nullptr;
  connection->sent_at = start != 0 ? start : monotonic_us();
  connection->deadline = add_ms(connection->sent_at, connection->options.timeout);
  connection->inflow = {0, static_cast<int64>(row_bytes) + kMaxUnforeseen};
  const int left = PQpipelineSync(pg) == 1 ? PQflush(pg) : -1;
  if (left >= 0) note_flushed(connection, left);
  return left >= 0 || fail(connection);
}

void wait_together(Connection* const* connections, int count, Manner manner) {
  Connection* waiting[kMaxTogether];
  for (;;) {
    int64 deadline = 0;
    const int rest = collect_waiting(connections, count, waiting, &deadline);
    if (rest == 0) return;
    const int left = time_left(deadline);
    if (left > 0 && manner == Manner::quiet) wait_quietly(waiting, rest, left);
    if (left > 0 && manner == Manner::interruptible) wait_interruptibly(waiting, rest, left);
    for (int i = 0; i < rest; ++i)
      go_on(waiting[i], manner, time_left(waiting[i]->deadline) == 0 || is_leaving(manner));
  }
}

bool receive(Connection* connection, Manner manner, const RowShape* rows, ResultVisitor visit,
             void* context) {
  if (connection->pg == nullptr) return false;
  AnswerSequence sequence(rows != nullptr);
  while (!sequence.is_done()) {
    PGresult* result = next_result(connection, manner);
    if (result == nullptr ||
        !take_result(connection, manner, result, &sequence, rows, visit, context))
      return false;
  }
  move_traffic(connection, TrafficEvent::answered);
  note_reached(connection->key.server);
  return true;
}

void forget_lost_time() { lost_time = 0; }

bool exchange(Connection* connection, const RowShape* rows, ResultVisitor visit, void* context) {
  const int timeout = connection->options.timeout;
  const long lost = Min(lost_time, timeout - timeout / kLeastShare);
  const int64 start = add_ms(monotonic_us(), -lost);
  return send_queued(connection, rows != nullptr ? rows->max_bytes() : 0, start) &&
         receive(connection, Manner::interruptible, rows, visit, context);
}

void take_value(void* received, const PGresult* result) {
  if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) == 0) return;
  auto* value = static_cast<ReceivedValue*>(received);
  value->found = true;
  value->length = PQgetlength(result, 0, 0);
  const Size size = static_cast<Size>(value->length) + 1;
  value->bytes =
      static_cast<char*>(MemoryContextAllocExtended(CurrentMemoryContext, size, MCXT_ALLOC_NO_OOM));
  if (value->bytes != nullptr) memcpy(value->bytes, PQgetvalue(result, 0, 0), size);
}

void check_memory(const ReceivedValue& received) {
  if (received.found && received.bytes == nullptr)
    ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
}

bool read_owed(Connection* connection) {
  PGconn* pg = connection->pg;
  if (!advance(connection)) return false;
  for (bool between = false; is_busy(connection) && !PQisBusy(pg);) {
    PGresult* result = PQgetResult(pg);
    if (result == nullptr && !between && PQstatus(pg) != CONNECTION_BAD) {
      between = true;
      continue;
    }
    if (result == nullptr) return fail(connection);
    between = false;
    const Reply reply = reply_of(result);
    const bool refused = reply == Reply::other || is_fatal(result);
    PQclear(result);
    if (refused) return refuse(connection, Manner::quiet, "it does not end what was interrupted");
    if (reply == Reply::sync) move_traffic(connection, TrafficEvent::answered);
  }
  return true;
}

bool drain(Connection* connection) {
  while (is_busy(connection))
    if (!wait_for_answer(connection, Manner::interruptible) || !read_owed(connection)) return false;
  return true;
}

// ---- errors -------------------------------------------------------------------------------------

bool is_fatal(const PGresult* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity != nullptr && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

bool has_sqlstate(const PGresult* error, int wanted) {
  return read_sqlstate(PQresultErrorField(error, PG_DIAG_SQLSTATE), 0) == wanted;
}

void raise_remote(Connection* connection) {
  const PGresult* result = connection->error;
  const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  // If the relation was dropped there, look for it again, and make it.
  if (has_sqlstate(result, ERRCODE_UNDEFINED_TABLE)) forget_relations(connection);
  const char* message = clean_field(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* detail = clean_field(result, PG_DIAG_MESSAGE_DETAIL);
  const char* hint = clean_field(result, PG_DIAG_MESSAGE_HINT);
  ereport(ERROR, errcode(read_sqlstate(code, ERRCODE_FDW_ERROR)),
          errmsg_internal("%s", message != nullptr ? message : "unknown error"),
          detail != nullptr ? errdetail_internal("%s", detail) : 0,
          hint != nullptr        ? errhint("%s", hint)
          : is_of_pooler(result) ? errhint("Is it a pooler? %s", kPoolerHint)
                                 : 0,
          errcontext("server \"%s\"", connection->name));
}

void raise_protocol_violation(Connection* connection, const char* what) {
  fail(connection, Failure::ended, what);
  ereport(ERROR, errcode(ERRCODE_PROTOCOL_VIOLATION),
          errmsg("server \"%s\" does not keep to the protocol", connection->name),
          errdetail_internal("%s.", what),
          errhint("Is it a PostgreSQL server with this version of the extension streamfilter?"));
}

}  // namespace streamfilter::pg
