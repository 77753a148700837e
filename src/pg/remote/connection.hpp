// The pool: connections to other servers over libpq, kept per server and user.
#pragma once

extern "C" {
#include <libpq-fe.h>
}

#include "pg/catalog/server_options.hpp"
#include "pg/shmem/server_health.hpp"

namespace streamfilter::pg {

struct ConnectionKey {
  Oid server;
  Oid user;
};

// Why a connection is of no more use.
enum class Failure : uint8 {
  none,
  ended,        // closed by the other side, or broken: another may be had at once
  unreachable,  // no connection, or no answer in time
};

// Never freed.
struct Connection {
  ConnectionKey key;
  PGconn* pg;       // nullptr: there is none
  uint64 number;    // changes when what is known of the relations there may be wrong
  bool valid;       // no option was changed since, and no request to cancel is on its way
  bool connecting;  // it does not stand yet
  PostgresPollingStatusType polling;  // what libpq waits for then
  bool accepted;                      // and the other side has taken it
  bool ready;                         // and what is called there is prepared
  int backend;                        // its process there; behind a pooler, one that it had
  bool busy;                          // answers have not been read
  bool dismissed;                     // the other side has said that it ends it
  bool needs_password;                // its user has to have one of his own
  ServerOptions options;
  char name[NAMEDATALEN];            // of the server
  char schema[2 * NAMEDATALEN + 3];  // of the extension there, quoted
  char version[32];                  // and its version
  uint32 server_hash, mapping_hash;  // of the syscache entries it was made from
  TimestampTz deadline;              // of the connection, or of the answers to what was sent
  TimestampTz sent_at;               // from when on they are waited for
  PGresult* error;                   // the first among them; nullptr: none
  Failure failure;                   // of the last connection
  char reason[256];                  // in whatever words and bytes libpq has for it
  bool overfull;                     // it has warned that a filter holds more than its rate allows
  bool warned;                       // this session was told that the server is unreachable

  // Of the transaction, remote_transaction.cpp.
  int level;     // transactions and savepoints open there
  int kept;      // of these, what savepoints here still stand for
  int undo;      // the outermost savepoint that is rolled back here, but not yet there; 0: none
  bool ending;   // the end of a savepoint, or of the transaction, has been sent
  bool hasty;    // it was told not to wait long for locks (queue_hasty_savepoint)
  bool changed;  // this transaction has changed filters there
  bool removed;  // it has deleted keys there, or all of them, so it must not commit without
  bool altered;  // what it has changed is the definition
  bool lost;     // and the connection on which it did so is gone
  bool claims;   // keys are reserved there
  int rank;      // connections of a higher one commit before
};

// Finds or makes the entry; connects to nothing.
Connection* find_connection(Oid server, Oid user);

// Reads name and options of the server anew.
void read_server(Connection* connection);

// Is there a connection, and not only an attempt at one?
inline bool stands(const Connection* connection) {
  return connection->pg != nullptr && !connection->connecting;
}

// Is a ready connection at its end, as after a restart there?
bool has_ended(const Connection* connection);

// As far as this session knows, its server cannot be reached.
bool is_unreachable(const Connection* connection);

// Closes; what the transaction has done there is rolled back by the server.
void disconnect(Connection* connection);

// Closes for this reason. An unreachable server is left alone for a while by all sessions without a
// connection.
void fail(Connection* connection, Failure failure, const char* reason);

// Relations that were found there may be gone, or there is another connection.
void forget_relations(Connection* connection);

// Calls visit for every connection that was ever made.
void visit_connections(void (*visit)(Connection* connection));

}  // namespace streamfilter::pg
