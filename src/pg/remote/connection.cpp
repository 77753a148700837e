#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>
#include <sys/ioctl.h>
}

#include "pg/catalog/lookup.hpp"
#include "pg/remote/connection.hpp"
#include "pg/server/hooks.hpp"
#include "pg/server/no_raise.hpp"

namespace streamfilter::pg {
namespace {

// Rough bound on unread messages on an idle connection.
constexpr int kMaxUnasked = 64;

HTAB* connections = nullptr;  // Connection by ConnectionKey
uint64 next_number = 1;

void close_all(int, Datum) {
  const NoRaise marked;
  visit_connections(disconnect);
}

void init_connections() {
  connections = make_hash_table<ConnectionKey, Connection>("streamfilter connections", 8);
  on_proc_exit(close_all, static_cast<Datum>(0));
}

}  // namespace

void on_connection_change(Datum, SF_SYSCACHE_ID cache, uint32 hash) {
  const NoRaise marked;
  if (connections == nullptr) return;
  transaction_uses_filters = true;  // so that the end of the transaction closes invalid ones
  for_each_entry<Connection>(connections, [=](Connection* connection) {
    if (hash == 0 ||
        hash == (cache == FOREIGNSERVEROID ? connection->server_hash : connection->mapping_hash))
      connection->valid = false;
  });
}

int unread_bytes(const PGconn* pg) {
  int bytes = 0;
  return ioctl(PQsocket(pg), FIONREAD, &bytes) == 0 ? bytes : 0;
}

// More may come while libpq reads: then the difference says too little. It has read what was there,
// or as much as it always has room for; when encrypted, at least a record, of unknown size.
int64 bytes_taken(PGconn* pg, int before, int after) {
  const int least = PQsslInUse(pg) || PQgssEncInUse(pg) ? 1024 : 8192;
  return after == 0 ? before : Max(before - after, Min(before, least));
}

Connection* find_connection(Oid server, Oid user) {
  transaction_uses_filters = true;
  if (connections == nullptr) init_connections();
  Connection fresh{};
  fresh.key = {server, user};
  if (auto* known = hash_search(connections, &fresh.key, HASH_FIND, nullptr))
    return static_cast<Connection*>(known);
  read_server(&fresh);
  auto* connection =
      static_cast<Connection*>(hash_search(connections, &fresh.key, HASH_ENTER, nullptr));
  *connection = fresh;
  return connection;
}

void read_server(Connection* connection) {
  const ForeignServer* server = server_of_oid(connection->key.server);
  strlcpy(connection->name, server->servername, NAMEDATALEN);
  connection->options = server_options(server->options);
}

bool has_ended(Connection* connection) {
  pollfd ready = {PQsocket(connection->pg), POLLIN, 0};
  for (int i = 0; i < kMaxUnasked; ++i) {
    if (connection->dismissed) return true;
    if (poll(&ready, 1, 0) == 0) return PQstatus(connection->pg) == CONNECTION_BAD;
    bool alive = false;
    const auto read = [&] { alive = PQconsumeInput(connection->pg) != 0; };
    if (!read_within(&connection->inflow, connection->pg, read) || !alive) return true;
    PQisBusy(connection->pg);  // reads notices and parameter changes
  }
  return true;
}

bool is_unreachable(const Connection* connection) {
  if (connection->lost) return true;
  return !stands(connection) && unreachable_since(connection->key.server) != 0;
}

void disconnect(Connection* connection) {
  if (connection->pg == nullptr) return;
  PQclear(connection->error);
  connection->error = nullptr;
  PQfinish(connection->pg);
  ReleaseExternalFD();
  connection->pg = nullptr;
  move_traffic(connection, TrafficEvent::closes);
  connection->ready = connection->ending = false;
  if (connection->level > 0 && connection->changed) connection->lost = true;
  connection->level = connection->kept = 0;
}

int disconnect_unneeded() {
  int closed = 0;
  if (connections == nullptr) return closed;
  for_each_entry<Connection>(connections, [&](Connection* connection) {
    if (connection->pg == nullptr || connection->level > 0 || is_busy(connection)) return;
    disconnect(connection);
    ++closed;
  });
  return closed;
}

void fail(Connection* connection, Failure failure, const char* reason) {
  transaction_uses_filters = true;
  connection->failure = failure;
  strlcpy(connection->reason, reason, sizeof connection->reason);
  disconnect(connection);
  if (failure == Failure::unreachable) note_unreachable(connection->key.server);
}

bool fail(Connection* connection) {
  fail(connection, Failure::ended, PQerrorMessage(connection->pg));
  return false;
}

bool fail_of_flood(Connection* connection) {
  fail(connection, Failure::unreachable, "it sends more than was asked for");
  return false;
}

void forget_relations(Connection* connection) { connection->number = next_number++; }

bool has_connections() { return connections != nullptr; }

void visit_connections(void (*visit)(Connection* connection)) {
  if (connections != nullptr) for_each_entry<Connection>(connections, visit);
}

// ---- text of another server ---------------------------------------------------------------------

namespace {

constexpr char kReplacement = '?';
constexpr char kCodeCharacters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\n' && c != '\t') || byte == 0x7f;
}

char* clean(const char* text, Size length) {
  const int encoding = GetDatabaseEncoding();
  auto* result = static_cast<char*>(palloc(kMaxPeerText + 1));
  int used = 0;
  for (const char *at = text, *end = text + length; at < end;) {
    const int rest = static_cast<int>(Min(end - at, MAX_MULTIBYTE_CHAR_LEN));
    const int valid = pg_encoding_verifymbchar(encoding, at, rest);
    const int width = Max(valid, 1);
    if (used + width > kMaxPeerText) break;
    if (valid < 1 || is_control(*at))
      result[used] = kReplacement;
    else
      memcpy(result + used, at, static_cast<Size>(width));
    used += width;
    at += width;
  }
  result[used] = '\0';
  return result;
}

}  // namespace

char* clean_peer_text(const char* text) { return clean(text, strlen(text)); }

char* first_peer_line(const char* text) { return clean(text, strcspn(text, "\n")); }

int read_sqlstate(const char* code, int other) {
  if (code == nullptr || strlen(code) != 5 || strspn(code, kCodeCharacters) != 5) return other;
  const bool is_error =
      strncmp(code, "00", 2) != 0 && strncmp(code, "01", 2) != 0 && strncmp(code, "02", 2) != 0;
  return is_error ? MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4]) : other;
}

}  // namespace streamfilter::pg
