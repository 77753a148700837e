#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>

#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#include "pg/remote/pipeline.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kUndefinedTable[] = "42P01";

// Milliseconds until then, at least 0.
int time_left(TimestampTz deadline) {
  return static_cast<int>(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline));
}

// Does the server end the connection with this?
bool is_fatal(const PGresult* result) {
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity != nullptr && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

// Passes an answer on, or keeps it if it is the first error. False: the connection is at its end.
bool take_result(Connection* connection, PGresult* result, int number, ResultVisitor visit,
                 void* context) {
  const ExecStatusType status = PQresultStatus(result);
  const bool fatal = is_fatal(result) || PQstatus(connection->pg) == CONNECTION_BAD;
  if (status == PGRES_FATAL_ERROR && !fatal && connection->error == nullptr) {
    connection->error = result;
    return true;
  }
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) visit(context, number, result);
  if (fatal) lose(connection, PQresultErrorMessage(result));
  PQclear(result);
  return !fatal;
}

// Waits until the next answer is there, or the end of one (nullptr). False: lost.
bool next_result(Connection* connection, Manner manner, PGresult** result) {
  while (PQisBusy(connection->pg)) {
    const bool late = !wait_for_socket(connection->pg, false, connection->deadline, manner);
    if (!PQconsumeInput(connection->pg)) {
      lose(connection, PQerrorMessage(connection->pg));
      return false;
    }
    // Its answer may have come while another server kept us waiting.
    if (late && PQisBusy(connection->pg)) {
      lose(connection, "it does not answer in time");
      return false;
    }
  }
  *result = PQgetResult(connection->pg);
  if (*result != nullptr || PQstatus(connection->pg) != CONNECTION_BAD) return true;
  lose(connection, PQerrorMessage(connection->pg));
  return false;
}

}  // namespace

bool wait_for_socket(PGconn* pg, bool write, TimestampTz deadline, Manner manner) {
  const int left = time_left(deadline);
  if (left <= 0) return false;
  if (manner == Manner::quiet) {
    pollfd ready = {PQsocket(pg), static_cast<short>(POLLIN | (write ? POLLOUT : 0)), 0};
    poll(&ready, 1, left);
    return true;
  }
  const int events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | WL_SOCKET_READABLE |
                     (write ? WL_SOCKET_WRITEABLE : 0);
  const int happened = WaitLatchOrSocket(MyLatch, events, PQsocket(pg), left, PG_WAIT_EXTENSION);
  if (happened & WL_LATCH_SET) ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
  return true;
}

bool send_queued(Connection* connection, Manner manner) {
  PQclear(connection->error);
  connection->error = nullptr;
  connection->busy = true;
  connection->deadline =
      TimestampTzPlusMilliseconds(GetCurrentTimestamp(), connection->options.timeout);
  if (PQpipelineSync(connection->pg) != 1) {
    lose(connection, PQerrorMessage(connection->pg));
    return false;
  }
  for (;;) {
    const int rest = PQflush(connection->pg);
    if (rest == 0) return true;
    if (rest < 0 || !PQconsumeInput(connection->pg)) {
      lose(connection, PQerrorMessage(connection->pg));
      return false;
    }
    if (!wait_for_socket(connection->pg, true, connection->deadline, manner)) {
      lose(connection, "it does not read what is sent");
      return false;
    }
  }
}

bool receive(Connection* connection, Manner manner, ResultVisitor visit, void* context) {
  for (int number = 0;;) {
    PGresult* result;
    if (!next_result(connection, manner, &result)) return false;
    if (result == nullptr) continue;
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
      PQclear(result);
      connection->busy = false;
      note_reached(connection->state);
      return true;
    }
    if (!take_result(connection, result, number++, visit, context)) return false;
  }
}

void raise_remote(Connection* connection) {
  const PGresult* result = connection->error;
  const char* code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  // A relation that was dropped there is looked for, and made, again.
  if (code != nullptr && strcmp(code, kUndefinedTable) == 0) forget_relations(connection);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  const char* hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
  ereport(ERROR,
          errcode(code == nullptr ? ERRCODE_FDW_ERROR
                                  : MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4])),
          errmsg_internal("%s", message != nullptr ? message : "unknown error"),
          detail != nullptr ? errdetail_internal("%s", detail) : 0,
          hint != nullptr ? errhint("%s", hint) : 0, errcontext("server \"%s\"", connection->name));
  pg_unreachable();
}

}  // namespace streamfilter::pg
