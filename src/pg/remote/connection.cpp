#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>

#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/timestamp.h"
}

#include "pg/remote/pipeline.hpp"
#include "pg/remote/protocol.hpp"
#include "pg/remote/remote_transaction.hpp"

namespace streamfilter::pg {
namespace {

HTAB* connections = nullptr;  // Connection by ConnectionKey
uint64 next_number = 1;

// ---- connecting --------------------------------------------------------------------------------

// What libpq is told; keywords and values end with nullptr.
struct Target {
  static constexpr int kMost = 16;
  const char* keywords[kMost + 1] = {};
  const char* values[kMost + 1] = {};
  int count = 0;
  bool has_password = false;

  void add(const char* keyword, const char* value) {
    Assert(count < kMost);
    keywords[count] = keyword;
    values[count++] = value;
  }
};

void add_options(Target* target, List* options) {
  ListCell* cell;
  foreach (cell, options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    const char* value = defGetString(option);
    const bool password = strcmp(option->defname, "password") == 0;
    target->has_password |= password && value[0] != '\0';
    if (password || strcmp(option->defname, "user") == 0 || is_connection_option(option->defname))
      target->add(option->defname, value);
  }
}

// Without a password of its own, whoever is no superuser would be let in as the user that runs this
// server, by `trust`, `peer` or a password file.
[[noreturn]] void raise_password_required(const Connection* connection) {
  ereport(ERROR, errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
          errmsg("a password is required to connect to server \"%s\"", connection->name),
          errdetail("User \"%s\" is no superuser, and must connect with the password of the user "
                    "mapping.",
                    GetUserNameFromId(connection->key.user, true)),
          errhint("Set option password of the user mapping, and let the other server ask for it."));
  pg_unreachable();
}

// The message of a server that refuses a connection has "FATAL:  28P01: ..." in it, in any
// language, since it was asked to be verbose. Returns the SQLSTATE, or nullptr if no server has
// spoken.
const char* find_sqlstate(const char* message) {
  for (const char* at = strstr(message, ":  "); at != nullptr; at = strstr(at + 1, ":  ")) {
    const char* code = at + 3;
    if (strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 && code[5] == ':') return code;
  }
  return nullptr;
}

// Would trying again not help? Then it is no loss but a mistake: password, user, database.
bool is_refusal(const char* sqlstate) {
  return sqlstate != nullptr &&
         (strncmp(sqlstate, "28", 2) == 0 || strncmp(sqlstate, "3D", 2) == 0 ||
          strncmp(sqlstate, "42", 2) == 0);
}

// The first line, which says all that can be helped here.
char* first_line(const char* message) { return pnstrdup(message, strcspn(message, "\n")); }

[[noreturn]] void raise_refused(const Connection* connection, const char* message) {
  ereport(ERROR, errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
          errmsg("could not connect to server \"%s\"", connection->name),
          errdetail_internal("%s", message));
  pg_unreachable();
}

// Polls until the connection stands; false: it does not, or the time is over.
bool poll_connection(PGconn* pg, TimestampTz deadline) {
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  while (status != PGRES_POLLING_OK) {
    if (status == PGRES_POLLING_FAILED || PQsocket(pg) < 0) return false;
    if (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING)
      if (!wait_for_socket(pg, status == PGRES_POLLING_WRITING, deadline, Manner::interruptible))
        return false;
    status = PQconnectPoll(pg);
  }
  return true;
}

// What is only noted there would go to the log here.
void ignore_notice(void*, const PGresult*) {}

// The connection under construction belongs to the entry, so that an error does not leak it.
bool open_connection(Connection* connection, const Target* target) {
  if (!AcquireExternalFD())
    ereport(ERROR, errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
            errmsg("could not connect to server \"%s\"", connection->name),
            errdetail("There are too many open files on this server."));
  connection->pg = PQconnectStartParams(target->keywords, target->values, 0);
  connection->busy = true;
  if (connection->pg == nullptr) {
    ReleaseExternalFD();
    ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
  }
  PQsetErrorVerbosity(connection->pg, PQERRORS_VERBOSE);
  PQsetNoticeReceiver(connection->pg, ignore_notice, nullptr);
  const TimestampTz deadline =
      TimestampTzPlusMilliseconds(GetCurrentTimestamp(), connection->options.connect_timeout);
  if (PQstatus(connection->pg) != CONNECTION_BAD && poll_connection(connection->pg, deadline)) {
    connection->busy = false;
    return true;
  }
  const bool late = PQstatus(connection->pg) != CONNECTION_BAD;
  const char* message = late ? "it does not answer" : first_line(PQerrorMessage(connection->pg));
  const bool refused =
      !late && (PQconnectionNeedsPassword(connection->pg) || is_refusal(find_sqlstate(message)));
  if (!refused) {
    lose(connection, message);
    return false;
  }
  disconnect(connection);
  raise_refused(connection, message);
}

const char* kSetUp =
    "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e "
    "JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'streamfilter'";

// What the first exchange tells.
struct SetUp {
  bool ok;
  char schema[2 * NAMEDATALEN + 3];
};

void read_set_up(void* context, int, const PGresult* result) {
  auto* set_up = static_cast<SetUp*>(context);
  set_up->ok = PQntuples(result) == 1 && PQnfields(result) == 1;
  if (set_up->ok) strlcpy(set_up->schema, PQgetvalue(result, 0, 0), sizeof set_up->schema);
}

// Goes into pipeline mode, and prepares what will be called. False: lost.
bool set_up(Connection* connection) {
  if (PQsetnonblocking(connection->pg, 1) != 0 || !PQenterPipelineMode(connection->pg)) {
    lose(connection, PQerrorMessage(connection->pg));
    return false;
  }
  SetUp found{};
  PQsendQueryParams(connection->pg, kSetUp, 0, nullptr, nullptr, nullptr, nullptr, 0);
  if (!send_queued(connection, Manner::interruptible) ||
      !receive(connection, Manner::interruptible, read_set_up, &found))
    return false;
  bool prepared = found.ok;
  if (prepared) {
    prepare_calls(connection, found.schema);
    if (!send_queued(connection, Manner::interruptible) ||
        !receive(connection, Manner::interruptible))
      return false;
    prepared = connection->error == nullptr;
  }
  if (prepared) return true;
  disconnect(connection);
  ereport(ERROR, errcode(ERRCODE_FDW_ERROR),
          errmsg("server \"%s\" cannot hold filters", connection->name),
          found.ok ? errdetail("Its extension streamfilter is of another version.")
                   : errdetail("The database there has no extension streamfilter."),
          errhint("CREATE EXTENSION streamfilter there."));
}

void read_server(Connection* connection, const ForeignServer* server) {
  strlcpy(connection->name, server->servername, NAMEDATALEN);
  connection->options = server_options(server->options);
}

bool connect(Connection* connection) {
  const ForeignServer* server = GetForeignServer(connection->key.server);
  const UserMapping* mapping = GetUserMapping(connection->key.user, connection->key.server);
  read_server(connection, server);
  connection->server_hash =
      GetSysCacheHashValue1(FOREIGNSERVEROID, ObjectIdGetDatum(server->serverid));
  connection->mapping_hash = GetSysCacheHashValue1(USERMAPPINGOID, ObjectIdGetDatum(mapping->umid));
  connection->valid = true;
  if (connection->state == nullptr) connection->state = server_state(server->serverid);
  Target target;
  add_options(&target, server->options);
  add_options(&target, mapping->options);
  target.add("client_encoding", GetDatabaseEncodingName());
  target.add("fallback_application_name", "streamfilter");
  // Who waits there longer than this for a lock, or for several, is told so, and is not lost. A
  // client that has gone is noticed, so that closing the connection also cancels what it was doing.
  target.add("options", psprintf("-c search_path=pg_catalog -c lock_timeout=%d "
                                 "-c statement_timeout=%d "
                                 "-c client_connection_check_interval=200",
                                 Max(connection->options.timeout * 4 / 5, 1),
                                 Max(connection->options.timeout * 9 / 10, 2)));
  const bool superuser = superuser_arg(connection->key.user);
  if (!superuser && !target.has_password) raise_password_required(connection);
  if (!open_connection(connection, &target)) return false;
  if (!superuser && !PQconnectionUsedPassword(connection->pg)) {
    disconnect(connection);
    raise_password_required(connection);
  }
  PQsetErrorVerbosity(connection->pg, PQERRORS_DEFAULT);
  connection->number = next_number++;
  return set_up(connection);
}

// An idle connection has nothing to tell but that it is at its end, as after a restart there.
bool has_ended(const Connection* connection) {
  pollfd ready = {PQsocket(connection->pg), POLLIN, 0};
  return poll(&ready, 1, 0) != 0;
}

// ---- keeping -----------------------------------------------------------------------------------

void on_invalidation(Datum, int cache, uint32 hash) {
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, connections);
  while (auto* connection = static_cast<Connection*>(hash_seq_search(&scan)))
    if (hash == 0 ||
        hash == (cache == FOREIGNSERVEROID ? connection->server_hash : connection->mapping_hash))
      connection->valid = false;
}

void close_all(int, Datum) { visit_connections(disconnect); }

void init_connections() {
  HASHCTL control = {};
  control.keysize = sizeof(ConnectionKey);
  control.entrysize = sizeof(Connection);
  connections = hash_create("streamfilter connections", 8, &control, HASH_ELEM | HASH_BLOBS);
  CacheRegisterSyscacheCallback(FOREIGNSERVEROID, on_invalidation, static_cast<Datum>(0));
  CacheRegisterSyscacheCallback(USERMAPPINGOID, on_invalidation, static_cast<Datum>(0));
  on_proc_exit(close_all, static_cast<Datum>(0));
  init_remote_transactions();
}

}  // namespace

Connection* find_connection(Oid server, Oid user) {
  if (connections == nullptr) init_connections();
  const ConnectionKey key = {server, user};
  bool found;
  auto* connection = static_cast<Connection*>(hash_search(connections, &key, HASH_ENTER, &found));
  if (!found) {
    memset(static_cast<void*>(connection), 0, sizeof *connection);
    connection->key = key;
    read_server(connection, GetForeignServer(server));
  }
  return connection;
}

bool ensure_connected(Connection* connection) {
  if (connection->lost) return false;
  if (connection->busy) disconnect(connection);
  if (connection->pg != nullptr && connection->level == 0 &&
      (!connection->valid || has_ended(connection)))
    disconnect(connection);
  if (connection->state == nullptr) connection->state = server_state(connection->key.server);
  if (!may_try(connection->state,
               2 * connection->options.connect_timeout + connection->options.timeout))
    return false;
  return connection->pg != nullptr || connect(connection);
}

void disconnect(Connection* connection) {
  if (connection->pg == nullptr) return;
  PQclear(connection->error);
  connection->error = nullptr;
  PQfinish(connection->pg);
  ReleaseExternalFD();
  connection->pg = nullptr;
  connection->busy = false;
  if (connection->level > 0) connection->lost = true;
  connection->level = connection->kept = 0;
}

void lose(Connection* connection, const char* reason) {
  const bool news = !is_lost(connection->state);
  note_lost(connection->state);
  char message[256];
  strlcpy(message, reason, sizeof message);
  message[strcspn(message, "\n")] = '\0';
  disconnect(connection);
  if (news)
    ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
            errmsg("server \"%s\" is lost: keys are judged without its slices", connection->name),
            errdetail_internal("%s", message));
}

void forget_relations(Connection* connection) { connection->number = next_number++; }

void visit_connections(void (*visit)(Connection* connection)) {
  if (connections == nullptr) return;
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, connections);
  while (auto* connection = static_cast<Connection*>(hash_seq_search(&scan))) visit(connection);
}

}  // namespace streamfilter::pg
