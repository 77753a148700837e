#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>
}

#include "core/base/text.hpp"
#include "pg/remote/pipeline.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/deferred_messages.hpp"
#include "pg/server/hooks.hpp"
#include "pg/server/monotonic.hpp"

namespace streamfilter::pg {
namespace {

// ---- cancelling ---------------------------------------------------------------------------------

// Cancels this session's statements on other servers after an interrupt.

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
    "host", "hostaddr", "port", "options", "target_session_attrs", "load_balance_hosts", nullptr};

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
    if (option->val == nullptr || find_word(kOwnOptions, option->keyword) >= 0) continue;
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
  if (!connection->ready || !is_busy(connection) || count == kMaxRequests) return;
  if (!read_owed(connection) || !is_busy(connection)) return;
  Request* request = &requests[count++];
  *request = {};
  request->connection = connection;
  request->polling = PGRES_POLLING_WRITING;
  begin_request(request);
}

// A request under way could cancel the next command.
bool is_over(const Request* request) { return !request->pending && !is_busy(request->connection); }

pollfd awaited_of_request(const Request* request) {
  if (!request->pending) return {-1, 0, 0};
  const bool write = request->polling == PGRES_POLLING_WRITING;
  return {socket_of(request), static_cast<short>(write ? POLLOUT : POLLIN), 0};
}

pollfd awaited_of_connection(const Connection* connection) {
  if (!is_busy(connection)) return {-1, 0, 0};
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

// Asks all servers that owe answers to cancel, at once, then reads their answers. The connection of
// a server that has not finished within a second stays busy. Raises nothing, serves no interrupts,
// and does not wait if the session is to end.
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

// ---- transactions -------------------------------------------------------------------------------

constexpr char kLockTimeout[] = "SET LOCAL lock_timeout = 50";

bool queue_on_savepoint(Connection* connection, const char* command, int level) {
  char text[64];
  snprintf(text, sizeof text, "%s s%d", command, level);
  return queue_command(connection, text);
}

// Rolls back there what was rolled back here. False: the connection has failed.
bool queue_undo(Connection* connection) {
  if (connection->undo == 0) return true;
  if (!queue_on_savepoint(connection, "ROLLBACK TO SAVEPOINT", connection->undo) ||
      !queue_on_savepoint(connection, "RELEASE SAVEPOINT", connection->undo))
    return false;
  connection->level = connection->undo - 1;
  connection->undo = 0;
  return true;
}

// COMMIT of a transaction that has failed there answers ROLLBACK.
void note_rollback(void* context, const PGresult* result) {
  if (strcmp(PQcmdStatus(const_cast<PGresult*>(result)), "COMMIT") != 0)
    *static_cast<bool*>(context) = false;
}

// ---- at the end of a transaction: nothing raises, or waits longer than the timeouts ------------

// Connections with sent commands, as many as are waited for together.
constexpr int kMaxSent = 64;
Connection* sent[kMaxSent];
int sent_count;

void note_sent(Connection* connection) {
  if (connection->ending && sent_count < kMaxSent) sent[sent_count++] = connection;
}

// Sends to all, waits for all at once, and reads their answers.
void run_together(void (*send)(Connection* connection), void (*finish)(Connection* connection)) {
  visit_connections(send);
  sent_count = 0;
  visit_connections(note_sent);
  wait_together(sent, sent_count, Manner::quiet);
  visit_connections(finish);
}

int commit_rank;     // of the connections that commit next
int next_rank;       // the highest rank below; -1: none
int64 commit_start;  // start of the timeouts of all servers together

bool commits_now(const Connection* connection) {
  return connection->level > 0 && connection->rank == commit_rank && connection->pg != nullptr;
}

// Servers that hung before must leave a later one some time to answer.
int64 start_of_commit(const Connection* connection) {
  const int least = connection->options.timeout / kLeastShare;
  return Max(commit_start, add_ms(monotonic_us(), least - connection->options.timeout));
}

void send_commit(Connection* connection) {
  if (!commits_now(connection)) return;
  if (is_busy(connection)) return disconnect(connection);
  connection->ending = queue_command(connection, "COMMIT") &&
                       send_queued(connection, 0, start_of_commit(connection));
}

void finish_commit(Connection* connection) {
  if (!connection->ending) return;
  connection->ending = false;
  bool committed = true;
  if (!receive(connection, Manner::quiet, nullptr, note_rollback, &committed)) return;
  if (connection->error != nullptr || !committed) connection->lost = true;
  connection->level = connection->kept = 0;
}

// A connection that still owes an answer cannot be used any more.
void send_rollback(Connection* connection) {
  if (connection->pg == nullptr) return;
  if (is_busy(connection)) return disconnect(connection);
  if (connection->level == 0) return;
  connection->level = connection->kept = 0;
  connection->ending = queue_command(connection, "ROLLBACK") && send_queued(connection);
}

void finish(Connection* connection) {
  connection->lost = connection->changed = connection->removed = connection->required =
      connection->altered = connection->gives_up_early = connection->reserves = false;
  connection->level = connection->kept = connection->undo = connection->rank = 0;
  if (!connection->valid) disconnect(connection);
}

void refuse_prepare(Connection* connection) {
  if (connection->level > 0 || connection->lost)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("cannot PREPARE a transaction that has changed filters on other servers"),
            errdetail("Server \"%s\" cannot know how it ends.", connection->name),
            errhint("COMMIT it, or prepare transactions that use filters of this server only."));
}

// Releases the savepoint there only when there is something to send.
void keep_subtransaction(Connection* connection) {
  const int level = GetCurrentTransactionNestLevel();
  if (connection->kept >= level) connection->kept = level - 1;
}

void note_undo(Connection* connection) {
  const int level = GetCurrentTransactionNestLevel();
  if (connection->pg == nullptr || connection->kept < level) return;
  connection->undo = level;
  connection->kept = level - 1;
}

// While an answer is owed, the savepoint there must wait, see settle().
void send_undo(Connection* connection) {
  if (connection->pg == nullptr || connection->undo == 0 || is_busy(connection)) return;
  connection->ending = queue_undo(connection) && send_queued(connection);
}

void finish_undo(Connection* connection) {
  if (!connection->ending) return;
  connection->ending = false;
  if (receive(connection, Manner::quiet) && connection->error != nullptr) disconnect(connection);
}

}  // namespace

bool queue_transaction(Connection* connection) {
  transaction_uses_filters = true;
  if (!queue_undo(connection)) return false;
  if (connection->level > connection->kept) {
    if (!queue_on_savepoint(connection, "RELEASE SAVEPOINT", connection->kept + 1)) return false;
    connection->level = connection->kept;
  }
  if (connection->level == 0) {
    if (!queue_command(connection, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")) return false;
    connection->level = 1;
  }
  const int level = GetCurrentTransactionNestLevel();
  while (connection->level < level)
    if (!queue_on_savepoint(connection, "SAVEPOINT", ++connection->level)) return false;
  connection->kept = connection->level;
  return !connection->gives_up_early ||
         queue_command(connection, "SET LOCAL lock_timeout TO DEFAULT");
}

// Like a savepoint that was kept here: the next commands release it.
bool queue_savepoint_with_timeout(Connection* connection) {
  if (!queue_on_savepoint(connection, "SAVEPOINT", ++connection->level)) return false;
  connection->gives_up_early = true;
  return queue_command(connection, kLockTimeout);
}

void undo_savepoints_with_timeout(Connection** connections, int count) {
  for (int i = 0; i < count; ++i) {
    Connection* connection = connections[i];
    if (!stands(connection)) continue;
    connection->undo = connection->kept + 1;
    if (queue_undo(connection)) send_queued(connection);
  }
  wait_together(connections, count, Manner::interruptible);
  for (int i = 0; i < count; ++i) {
    if (!stands(connections[i]) || !receive(connections[i], Manner::interruptible)) continue;
    if (connections[i]->error != nullptr) raise_remote(connections[i]);
  }
}

bool settle(Connection* connection) {
  if (!drain(connection)) return false;
  if (connection->undo == 0) return true;
  if (!queue_undo(connection) || !exchange(connection)) return false;
  if (connection->error != nullptr) raise_remote(connection);
  return true;
}

void commit_remote_transactions() {
  commit_start = monotonic_us();
  commit_rank = PG_INT32_MAX;
  do {
    run_together(send_commit, finish_commit);
    next_rank = -1;
    visit_connections([](Connection* connection) {
      if (connection->level > 0 && connection->rank < commit_rank)
        next_rank = Max(next_rank, connection->rank);
    });
    commit_rank = next_rank;
  } while (commit_rank >= 0);
}

void roll_back_remote_transactions() {
  cancel_busy_connections();
  run_together(send_rollback, finish_undo);
}

void end_remote_transactions(bool committed) {
  visit_connections(committed ? [](Connection* connection) {
    if (lost_changes(connection))
      defer_message(connection->altered   ? Message::not_altered
                    : connection->removed ? Message::keys_not_deleted
                                          : Message::keys_not_remembered,
                    connection->name,
                    connection->pg == nullptr ? connection->reason : "");
    finish(connection);
  } : finish);
}

void refuse_to_prepare_remote_transactions() { visit_connections(refuse_prepare); }

void keep_remote_savepoint() { visit_connections(keep_subtransaction); }

void roll_back_remote_savepoint() {
  cancel_busy_connections();
  visit_connections(note_undo);
  run_together(send_undo, finish_undo);
}

}  // namespace streamfilter::pg
