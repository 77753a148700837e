#include "pg/server/postgres.hpp"

#include "pg/remote/pipeline.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/deferred_messages.hpp"

namespace streamfilter::pg {
namespace {

bool queue_command(Connection* connection, const char* command) {
  return PQsendQueryParams(connection->pg, command, 0, nullptr, nullptr, nullptr, nullptr, 0) == 1;
}

bool queue_on_savepoint(Connection* connection, const char* command, int level) {
  char text[64];
  snprintf(text, sizeof text, "%s s%d", command, level);
  return queue_command(connection, text);
}

// COMMIT of a transaction that has failed there answers ROLLBACK.
void note_rollback(void* context, int, const PGresult* result) {
  if (strcmp(PQcmdStatus(const_cast<PGresult*>(result)), "COMMIT") != 0)
    *static_cast<bool*>(context) = false;
}

// ---- at the end of a transaction: nothing raises, or waits longer than the timeouts ------------

int commit_rank;  // of the connections that are next
int highest_rank;

bool commits_now(const Connection* connection) {
  return connection->level > 0 && connection->rank == commit_rank && connection->pg != nullptr;
}

void send_commit(Connection* connection) {
  if (!commits_now(connection)) return;
  if (connection->busy || !queue_command(connection, "COMMIT"))
    disconnect(connection);
  else
    send_queued(connection, Manner::quiet);
}

void finish_commit(Connection* connection) {
  if (!commits_now(connection)) return;
  bool committed = true;
  if (!receive(connection, Manner::quiet, note_rollback, &committed)) return;
  if (connection->error != nullptr || !committed) connection->lost = true;
  connection->level = connection->kept = 0;
}

// A connection that had to wait for an answer when this transaction failed is of no more use.
void send_rollback(Connection* connection) {
  if (connection->pg == nullptr) return;
  if (connection->busy) return disconnect(connection);
  if (connection->level == 0) return;
  if (queue_command(connection, "ROLLBACK"))
    send_queued(connection, Manner::quiet);
  else
    disconnect(connection);
}

void finish_rollback(Connection* connection) {
  if (connection->level == 0 || connection->pg == nullptr) return;
  if (!receive(connection, Manner::quiet)) return;
  connection->level = connection->kept = 0;
  if (connection->error != nullptr) disconnect(connection);
}

void finish(Connection* connection) {
  connection->lost = connection->changed = false;
  connection->level = connection->kept = connection->rank = 0;
  if (!connection->valid) disconnect(connection);
}

void refuse_prepare(Connection* connection) {
  if (connection->level > 0 || connection->lost)
    ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("cannot PREPARE a transaction that has changed filters on other servers"),
            errdetail("Server \"%s\" cannot know how it ends.", connection->name));
}

// The savepoint there is only released when there is something to send.
void keep_subtransaction(Connection* connection) {
  const int level = GetCurrentTransactionNestLevel();
  if (connection->kept >= level) connection->kept = level - 1;
}

void roll_back_subtransaction(Connection* connection) {
  const int level = GetCurrentTransactionNestLevel();
  if (connection->busy) return disconnect(connection);
  if (connection->pg == nullptr || connection->kept < level) return;
  if (!queue_on_savepoint(connection, "ROLLBACK TO SAVEPOINT", level) ||
      !queue_on_savepoint(connection, "RELEASE SAVEPOINT", level))
    return disconnect(connection);
  if (!send_queued(connection, Manner::quiet) || !receive(connection, Manner::quiet)) return;
  if (connection->error != nullptr) return disconnect(connection);
  connection->level = connection->kept = level - 1;
}

}  // namespace

int queue_transaction(Connection* connection) {
  int commands = 0;
  bool sent = true;
  if (connection->level > connection->kept) {
    sent = queue_on_savepoint(connection, "RELEASE SAVEPOINT", connection->kept + 1);
    connection->level = connection->kept;
    ++commands;
  }
  const int level = GetCurrentTransactionNestLevel();
  if (connection->level == 0 && sent) {
    sent = queue_command(connection, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
    connection->level = 1;
    ++commands;
  }
  for (; connection->level < level && sent; ++commands)
    sent = queue_on_savepoint(connection, "SAVEPOINT", ++connection->level);
  connection->kept = connection->level;
  if (!sent) disconnect(connection);
  return commands;
}

void commit_remote_transactions() {
  highest_rank = 0;
  visit_connections([](Connection* connection) {
    if (connection->level > 0) highest_rank = Max(highest_rank, connection->rank);
  });
  for (commit_rank = highest_rank; commit_rank >= 0; --commit_rank) {
    visit_connections(send_commit);
    visit_connections(finish_commit);
  }
}

void roll_back_remote_transactions() {
  visit_connections(send_rollback);
  visit_connections(finish_rollback);
}

void end_remote_transactions(bool committed) {
  visit_connections(committed ? [](Connection* connection) {
    if (lost_changes(connection)) defer_message(Message::keys_not_remembered, connection->name);
    finish(connection);
  } : finish);
}

void refuse_to_prepare_remote_transactions() { visit_connections(refuse_prepare); }

void keep_remote_savepoint() { visit_connections(keep_subtransaction); }

void roll_back_remote_savepoint() { visit_connections(roll_back_subtransaction); }

}  // namespace streamfilter::pg
