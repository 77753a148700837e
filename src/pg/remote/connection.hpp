// The pool of libpq connections to other servers, one per server and user.
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

// Why a connection has failed.
enum class Failure : uint8 {
  none,
  ended,        // closed by the server, or broken: reconnect at once
  unreachable,  // no connection, or no answer in time
};

// What a peer has sent. libpq keeps whatever comes, any number of rows and a message of any length,
// so that nothing else bounds the memory that a peer can take. Looked at before each read: libpq
// reads a large message until the socket is empty, which may be more.
struct Inflow {
  int64 taken;    // bytes that libpq has read
  int64 allowed;  // bytes that may come
};

// Bytes for what cannot be foreseen, such as errors, notices, and all that comes before the first
// command. libpq searches a list for each parameter that the peer reports, so that many take long.
constexpr int64 kMaxUnforeseen = 256 * 1024;

// Bytes in the socket.
int unread_bytes(const PGconn* pg);
// Bytes that libpq has read if these were there before and after.
int64 bytes_taken(PGconn* pg, int before, int after);

// Lets libpq read. False: more has come than is allowed, and nothing was read.
template <typename Read>
bool read_within(Inflow* inflow, PGconn* pg, Read&& read) {
  const int before = unread_bytes(pg);
  if (inflow->taken + before > inflow->allowed) return false;
  read();
  inflow->taken += bytes_taken(pg, before, unread_bytes(pg));
  return true;
}

// What passes over a connection; `sending`: output is left, and from there on answers are owed.
// Only this session moves it, under no lock.
//
//   | before     | begins     | welcomed | held up | sent     | answered | closes |
//   |------------|------------|----------|---------|----------|----------|--------|
//   | closed     | connecting |          |         |          |          |        |
//   | connecting |            | idle     |         |          |          | closed |
//   | idle       |            |          | sending | awaiting |          | closed |
//   | sending    |            |          | sending | awaiting | idle     | closed |
//   | awaiting   |            |          |         | awaiting | idle     | closed |
enum class Traffic : uint8 { closed, connecting, idle, sending, awaiting };
enum class TrafficEvent : uint8 { begins, welcomed, held_up, sent, answered, closes };

// By event: from which states, the first to the last, it leads to which.
constexpr struct {
  Traffic first, last, to;
} kTrafficMoves[] = {
    {Traffic::closed, Traffic::closed, Traffic::connecting},
    {Traffic::connecting, Traffic::connecting, Traffic::idle},
    {Traffic::idle, Traffic::sending, Traffic::sending},
    {Traffic::idle, Traffic::awaiting, Traffic::awaiting},
    {Traffic::sending, Traffic::awaiting, Traffic::idle},
    {Traffic::connecting, Traffic::awaiting, Traffic::closed},
};

// Never freed.
struct Connection {
  ConnectionKey key;
  PGconn* pg;       // nullptr: none
  uint64 number;    // changes when knowledge of the relations there may be outdated
  bool valid;       // options are unchanged, and no cancel request is under way
  Traffic traffic;  // see move_traffic
  PostgresPollingStatusType polling;  // what libpq waits for meanwhile
  bool accepted;                      // the server has accepted it
  bool spoke;                         // libpq has closed the attempt over what the server sent
  bool refused;                       // an attempt before was refused; `reason` has why
  bool picks_host;                    // option target_session_attrs: a standby is no answer
  bool ready;                         // the calls are prepared
  int backend;                        // process on the server; behind a pooler, one that it had
  Inflow inflow;                      // since the start, or since commands were sent
  bool dismissed;                     // the server has announced that it ends it
  bool needs_password;                // the user mapping must have a password
  ServerOptions options;
  char name[NAMEDATALEN];            // of the server
  char schema[2 * NAMEDATALEN + 3];  // of the extension there, quoted
  char version[32];                  // of the extension there
  uint32 server_hash, mapping_hash;  // of the syscache entries that it was made from
  int64 deadline;                    // in monotonic_us(): for connecting, or for the owed answers
  int64 sent_at;                     // likewise: start of the wait for answers
  PGresult* error;                   // the first among the answers; nullptr: none
  Failure failure;                   // of the last connection
  char reason[256];                  // in libpq's words and bytes
  bool overfull;                     // it has warned that a filter holds more than its rate allows
  bool late;                         // it has warned of an event too late to be remembered
  bool warned;                       // this session was told that the server is unreachable

  // Of the transaction, remote_transaction.cpp.
  int level;            // transactions and savepoints open there
  int kept;             // of these, levels that savepoints here still need
  int undo;             // outermost savepoint rolled back here but not yet there; 0: none
  bool ending;          // the end of a savepoint or of the transaction has been sent
  bool gives_up_early;  // it does not wait long for locks
  bool changed;         // this transaction has changed filters there
  bool removed;         // it has deleted keys there, so it must not commit without the server
  bool required;        // it must not either, by option lost_slice of a filter
  bool altered;         // it has changed a definition
  bool lost;            // the connection with these changes is gone
  bool reserves;        // keys are reserved there
  int rank;             // connections of higher rank commit first
};

// Finds or makes the entry, without connecting.
Connection* find_connection(Oid server, Oid user);

// A step of kCatalogSteps, for servers and user mappings.
void on_connection_change(Datum, SF_SYSCACHE_ID cache, uint32 hash);

// Reads the server's name and options again.
void read_server(Connection* connection);

inline void move_traffic(Connection* connection, TrafficEvent event) {
  const auto& move = kTrafficMoves[static_cast<int>(event)];
  Assert(connection->traffic >= move.first && connection->traffic <= move.last);
  connection->traffic = move.to;
}

// Is there an established connection? Are answers owed?
inline bool stands(const Connection* connection) { return connection->traffic >= Traffic::idle; }
inline bool is_busy(const Connection* connection) {
  return connection->traffic >= Traffic::sending;
}

// Has the server ended a ready connection, for example by a restart?
bool has_ended(Connection* connection);

// Is the server unreachable, as far as this session knows?
bool is_unreachable(const Connection* connection);

// Closes the connection; the server then rolls back the transaction's changes.
void disconnect(Connection* connection);

// Closes the connection for this reason. All sessions without a connection leave an unreachable
// server alone for a while.
void fail(Connection* connection, Failure failure, const char* reason);
// The same where libpq has found that it is broken. Returns false.
bool fail(Connection* connection);
// The same where the server sends more than it may. Returns false.
bool fail_of_flood(Connection* connection);

// Call when relations that were found there may be gone, or after reconnecting.
void forget_relations(Connection* connection);

// Closes connections without a transaction or answers to come. Returns how many.
int disconnect_unneeded();

// Has the session ever made one?
bool has_connections();

// Calls visit for every connection that was ever made.
void visit_connections(void (*visit)(Connection* connection));

// ---- text of another server ---------------------------------------------------------------------

// Text from another server, or from libpq about it, which may contain anything.

// Length of text that is shown.
constexpr int kMaxPeerText = 2048;

// A copy that is valid in the database's encoding: invalid bytes and control characters become
// question marks, and long text is cut between characters. Allocates in the current context.
char* clean_peer_text(const char* text);

// The same, up to the end of the first line.
char* first_peer_line(const char* text);

// The SQLSTATE of five characters for ereport; `other` if it is none, or no error.
int read_sqlstate(const char* code, int other);

}  // namespace streamfilter::pg
