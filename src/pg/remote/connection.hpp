// Connections to other servers over libpq, kept per server and user.
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

// Never freed.
struct Connection {
  ConnectionKey key;
  PGconn* pg;     // nullptr: there is none
  uint64 number;  // changes when what is known of the relations there may be wrong
  bool valid;     // no option was changed since
  bool busy;      // answers have not been read
  ServerOptions options;
  ServerState* state;                // nullptr: no room for it
  char name[NAMEDATALEN];            // of the server
  uint32 server_hash, mapping_hash;  // of the syscache entries it was made from
  TimestampTz deadline;              // of the answers to what was sent
  PGresult* error;                   // the first among them; nullptr: none

  // Of the transaction, remote_transaction.cpp.
  int level;     // transactions and savepoints open there
  int kept;      // of these, what savepoints here still stand for
  bool lost;     // the connection was lost in this transaction
  bool changed;  // this transaction has changed filters there
  int rank;      // connections of a higher one commit before
};

// Finds or makes the entry; connects to nothing.
Connection* find_connection(Oid server, Oid user);

// Connects if need be. False: the server cannot be reached, or it is too early to try again. Raises
// 08001 and what the server says if it refuses (password, database), 2F003 where a password is
// required.
bool ensure_connected(Connection* connection);

// Closes; what the transaction has done there is rolled back by the server.
void disconnect(Connection* connection);

// The connection failed or did not answer in time: closes it, and others leave the server alone a
// while.
void lose(Connection* connection, const char* reason);

// Relations that were found there may be gone.
void forget_relations(Connection* connection);

// Calls visit for every connection that was ever made.
void visit_connections(void (*visit)(Connection* connection));

}  // namespace streamfilter::pg
