#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>
}

#include "pg/remote/cancel.hpp"
#include "pg/remote/pipeline.hpp"
#include "pg/server/monotonic.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kCancelTimeout = 1000;  // ms, for all servers together
constexpr int kMaxRequests = 64;      // at once; further connections stay busy

// ---- one request --------------------------------------------------------------------------------

struct Request {
  Connection* connection;
#ifdef LIBPQ_HAS_ASYNC_CANCEL
  PGcancelConn* pg;
#else
  PGconn* pg;
  Inflow inflow;
  bool sent;
#endif
  PostgresPollingStatusType polling;
  bool pending;   // has not ended yet, in success or failure
  bool answered;  // the server has carried it out
};

#ifdef LIBPQ_HAS_ASYNC_CANCEL

void begin_request(Request* request) {
  request->pg = PQcancelCreate(request->connection->pg);
  request->pending = request->pg != nullptr && PQcancelStart(request->pg) == 1;
}

int socket_of(const Request* request) { return PQcancelSocket(request->pg); }

void advance_request(Request* request) {
  request->polling = PQcancelPoll(request->pg);
  request->answered = request->polling == PGRES_POLLING_OK;
  request->pending = !request->answered && request->polling != PGRES_POLLING_FAILED;
}

bool may_arrive(const Request* request) { return request->pg != nullptr && !request->answered; }

void end_request(Request* request) { PQcancelFinish(request->pg); }

#else

// PQcancel() of this libpq has no timeout, so a second connection sends the request. These options
// of the first one do not apply to it.
constexpr const char* kOwnOptions[] = {
    "host", "hostaddr", "port", "options", "target_session_attrs", "load_balance_hosts"};

bool is_taken_over(const PQconninfoOption* option) {
  if (option->val == nullptr) return false;
  for (const char* own : kOwnOptions)
    if (strcmp(option->keyword, own) == 0) return false;
  return true;
}

void ignore_notice(void*, const PGresult*) {}

// Connects to the same address, without a name look-up, as the same user.
PGconn* connect_likewise(PGconn* pg) {
  constexpr int kMost = 96;
  const char* keywords[kMost + 1] = {"host", "hostaddr", "port"};
  const char* values[kMost + 1] = {PQhost(pg), PQhostaddr(pg), PQport(pg)};
  int count = 3;
  PQconninfoOption* options = PQconninfo(pg);
  if (options == nullptr) return nullptr;
  for (const PQconninfoOption* option = options; option->keyword != nullptr && count < kMost;
       ++option) {
    if (!is_taken_over(option)) continue;
    keywords[count] = option->keyword;
    values[count++] = option->val;
  }
  PGconn* result = PQconnectStartParams(keywords, values, 0);
  PQconninfoFree(options);
  if (result != nullptr) PQsetNoticeReceiver(result, ignore_notice, nullptr);
  return result;
}

// Behind a pooler the server process may now work for another client.
bool is_behind_pooler(const Connection* connection) {
  return PQbackendPID(connection->pg) != connection->backend;
}

void begin_request(Request* request) {
  if (is_behind_pooler(request->connection)) return;
  request->pg = connect_likewise(request->connection->pg);
  request->inflow = {0, kMaxUnforeseen};
  request->pending = request->pg != nullptr && PQstatus(request->pg) != CONNECTION_BAD;
}

int socket_of(const Request* request) { return PQsocket(request->pg); }

bool send_request(Request* request) {
  char query[64];
  snprintf(query, sizeof query, "SELECT pg_catalog.pg_cancel_backend(%d)",
           request->connection->backend);
  request->sent = true;
  request->polling = PGRES_POLLING_READING;
  return PQsendQuery(request->pg, query) == 1;
}

void read_request(Request* request) {
  if (request->sent) {
    const bool reads = PQconsumeInput(request->pg) != 0;
    request->pending = reads && PQisBusy(request->pg);
    request->answered = reads && !request->pending;
    return;
  }
  request->polling = PQconnectPoll(request->pg);
  if (request->polling == PGRES_POLLING_OK)
    request->pending = send_request(request);
  else
    request->pending = request->polling != PGRES_POLLING_FAILED;
}

void advance_request(Request* request) {
  if (!read_within(&request->inflow, request->pg, [&] { read_request(request); }))
    request->pending = false;
}

bool may_arrive(const Request* request) { return request->sent && !request->answered; }

void end_request(Request* request) { PQfinish(request->pg); }

#endif

// ---- all of them --------------------------------------------------------------------------------

Request requests[kMaxRequests];
int count;

// A connection whose answers have come meanwhile needs no cancelling.
void begin_if_busy(Connection* connection) {
  if (!connection->ready || !connection->busy || count == kMaxRequests) return;
  if (!read_owed(connection) || !connection->busy) return;
  Request* request = &requests[count++];
  *request = {};
  request->connection = connection;
  request->polling = PGRES_POLLING_WRITING;
  begin_request(request);
}

// A request under way could cancel the next command.
bool is_over(const Request* request) {
  return !request->pending && (request->connection->pg == nullptr || !request->connection->busy);
}

pollfd awaited_of_request(const Request* request) {
  if (!request->pending) return {-1, 0, 0};
  const bool write = request->polling == PGRES_POLLING_WRITING;
  return {socket_of(request), static_cast<short>(write ? POLLOUT : POLLIN), 0};
}

pollfd awaited_of_connection(const Connection* connection) {
  if (connection->pg == nullptr || !connection->busy) return {-1, 0, 0};
  return {PQsocket(connection->pg), POLLIN, 0};
}

// False when nothing more is to be sent or expected.
bool wait_for_requests(int ms) {
  pollfd awaited[2 * kMaxRequests];
  bool any = false;
  for (int i = 0; i < count; ++i) {
    awaited[2 * i] = awaited_of_request(&requests[i]);
    awaited[2 * i + 1] = awaited_of_connection(requests[i].connection);
    any |= !is_over(&requests[i]);
  }
  if (!any) return false;
  poll(awaited, static_cast<nfds_t>(2 * count), ms);
  for (int i = 0; i < count; ++i) {
    if (awaited[2 * i].revents != 0) advance_request(&requests[i]);
    if (awaited[2 * i + 1].revents != 0) read_owed(requests[i].connection);
  }
  return true;
}

}  // namespace

void cancel_busy_connections() {
  count = 0;
  if (is_leaving(Manner::quiet)) return;
  visit_connections(begin_if_busy);
  const int64 deadline = add_ms(monotonic_us(), kCancelTimeout);
  for (;;) {
    const int left = time_left(deadline);
    if (left == 0 || is_leaving(Manner::quiet) || !wait_for_requests(Min(left, kGlance))) break;
  }
  for (int i = 0; i < count; ++i) {
    // The request could hit any later command, so the connection must not outlive this transaction.
    if (may_arrive(&requests[i])) requests[i].connection->valid = false;
    if (requests[i].pg != nullptr) end_request(&requests[i]);
  }
}

}  // namespace streamfilter::pg
