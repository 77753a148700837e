#include "pg/server/postgres.hpp"

#include "pg/remote/cancel.hpp"
#include "pg/remote/pipeline.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/deferred_messages.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/transaction_use.hpp"

namespace streamfilter::pg {
namespace {

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
  if (connection->busy) return disconnect(connection);
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
  if (connection->busy) return disconnect(connection);
  if (connection->level == 0) return;
  connection->ending = queue_command(connection, "ROLLBACK") && send_queued(connection);
}

void finish_rollback(Connection* connection) {
  if (!connection->ending) return;
  connection->ending = false;
  if (!receive(connection, Manner::quiet)) return;
  connection->level = connection->kept = 0;
  if (connection->error != nullptr) disconnect(connection);
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
  if (connection->pg == nullptr || connection->undo == 0 || connection->busy) return;
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
  run_together(send_rollback, finish_rollback);
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
