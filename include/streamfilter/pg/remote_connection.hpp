// Connections to other servers over libpq, kept per server and user. Nothing here waits longer than the
// server's timeouts. A connection is always in pipeline mode: commands are queued, sent together, and
// answered together.
#pragma once

extern "C" {
#include <libpq-fe.h>
}

#include "streamfilter/pg/lost_servers.hpp"
#include "streamfilter/pg/server_options.hpp"

namespace streamfilter::pg {

struct ConnectionKey {
  Oid server;
  Oid user;
};

// Never freed.
struct Connection {
  ConnectionKey key;
  PGconn* pg;            // nullptr: there is none
  uint64 number;         // differs for every connection made
  bool valid;            // no option was changed since
  bool busy;             // answers have not been read
  ServerOptions options;
  ServerState* state;    // nullptr: no room for it
  char name[NAMEDATALEN];  // of the server
  uint32 server_hash, mapping_hash;  // of the syscache entries it was made from
  TimestampTz deadline;  // of the answers to what was sent
  PGresult* error;       // the first among them; nullptr: none

  // Of the transaction, remote_transaction.cpp.
  int level;            // transactions and savepoints open there
  int kept;             // of these, what savepoints here still stand for
  bool lost;            // the connection was lost in this transaction
  bool changed;         // this transaction has changed filters there
  int rank;             // connections of a higher one commit before
};

// How to wait: callbacks at commit and abort neither raise nor serve interrupts.
enum class Manner : uint8 { interruptible, quiet };

// Finds or makes the entry; connects to nothing.
Connection* find_connection(Oid server, Oid user);

// Connects if need be. False: the server cannot be reached, or it is too early to try again. Raises 08001
// and what the server says if it refuses (password, database), 2F003 where a password is required.
bool ensure_connected(Connection* connection);

// Closes; what the transaction has done there is rolled back by the server.
void disconnect(Connection* connection);

// The connection failed or did not answer in time: closes it, and others leave the server alone a while.
void lose(Connection* connection, const char* reason);

// Ends what has been queued, and sends it. False: lost.
bool send_queued(Connection* connection, Manner manner);

// Reads the answers to what was sent and shows the visitor, which must not raise, each with the number of
// its command; but the first error is kept in `error`. False: lost. Interrupts may raise in between; the
// connection stays busy then.
using ResultVisitor = void (*)(void* context, int number, const PGresult* result);
bool receive(Connection* connection, Manner manner, ResultVisitor visit, void* context);

// Raises `error` as one of ours, with its SQLSTATE.
[[noreturn]] void raise_remote(const Connection* connection);

// Calls visit for every connection that was ever made.
void visit_connections(void (*visit)(Connection* connection));

}  // namespace streamfilter::pg
