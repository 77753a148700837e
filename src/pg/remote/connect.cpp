#include "pg/server/postgres.hpp"

extern "C" {
#include <poll.h>

#include "commands/defrem.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/catalog/option_list.hpp"
#include "pg/remote/connect.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/deferred_messages.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/wait_events.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kProbeWait = 250;    // ms, for a server that was unreachable
constexpr int kRepeatPause = 100;  // ms between attempts if a server has no room
// TCP keepalives, by which both sides notice a broken connection: seconds, seconds, and number.
// Options of the server override them.
constexpr int kKeepalivesIdle = 30, kKeepalivesInterval = 10, kKeepalivesCount = 3;

// ---- what libpq is told -------------------------------------------------------------------------

// Keywords and values, ended by nullptr.
struct Target {
  static constexpr int kMax = 64;
  const char* keywords[kMax + 1] = {};
  const char* values[kMax + 1] = {};
  int count = 0;
  bool has_password = false;

  void add(const char* keyword, const char* value) {
    if (count == kMax) elog(ERROR, "too many options of a server");
    keywords[count] = keyword;
    values[count++] = value;
  }
};

void add_options(Target* target, List* options) {
  for (auto* option : each<DefElem>(options)) {
    const char* value = defGetString(option);
    const bool password = strcmp(option->defname, "password") == 0;
    target->has_password |= password && value[0] != '\0';
    if (is_user_option(option->defname) || is_connection_option(option->defname))
      target->add(option->defname, value);
  }
}

// A session that waits longer for locks there gets an error, and is not lost. The server notices a
// client that has gone, so closing the connection also cancels its statement; a client that is cut
// off or frozen does not keep its keys for ever, and one that is idle keeps no session there: it
// runs no code meanwhile, and reconnects when it has a key to ask.
const char* session_options(const ServerOptions* options) {
  return psprintf(
      "-c search_path=pg_catalog -c lock_timeout=%d -c statement_timeout=%d "
      "-c client_connection_check_interval=200 -c idle_in_transaction_session_timeout=%d "
      "-c idle_session_timeout=%d "
      "-c tcp_keepalives_idle=%d -c tcp_keepalives_interval=%d -c tcp_keepalives_count=%d",
      Max(options->timeout * 4 / 5, 1), Max(options->timeout * 9 / 10, 2), options->idle_timeout,
      options->idle_timeout, kKeepalivesIdle, kKeepalivesInterval, kKeepalivesCount);
}

// Without a password, a role without superuser rights would connect as the account that runs this
// server, by `trust`, `peer` or a password file.
[[noreturn]] void raise_password_required(const Connection* connection) {
  ereport(ERROR, errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
          errmsg("a password is required to connect to server \"%s\"", connection->name),
          errdetail("User \"%s\" is no superuser, and must connect with the password of the user "
                    "mapping.",
                    GetUserNameFromId(connection->key.user, true)),
          errhint("Set option password of the user mapping, and let the other server ask for it."));
}

// GetUserMapping() itself does not say what to type.
void check_user_mapping(const Connection* connection) {
  if (has_user_mapping(connection->key.user, connection->key.server)) return;
  const char* role = GetUserNameFromId(connection->key.user, false);
  ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
          errmsg("user mapping not found for \"%s\"", role),
          errhint("Type: CREATE USER MAPPING FOR %s SERVER %s OPTIONS (user '...', "
                  "password '...').",
                  quote_identifier(role), quote_identifier(connection->name)));
}

Target make_target(Connection* connection) {
  const ForeignServer* server = server_of_oid(connection->key.server);
  read_server(connection);
  check_user_mapping(connection);
  const UserMapping* mapping = GetUserMapping(connection->key.user, connection->key.server);
  connection->server_hash =
      GetSysCacheHashValue1(FOREIGNSERVEROID, ObjectIdGetDatum(server->serverid));
  connection->mapping_hash = GetSysCacheHashValue1(USERMAPPINGOID, ObjectIdGetDatum(mapping->umid));
  connection->valid = true;
  connection->picks_host = find_option(server->options, "target_session_attrs") != nullptr;
  Target target;
  target.add("keepalives_idle", psprintf("%d", kKeepalivesIdle));
  target.add("keepalives_interval", psprintf("%d", kKeepalivesInterval));
  target.add("keepalives_count", psprintf("%d", kKeepalivesCount));
  add_options(&target, server->options);
  add_options(&target, mapping->options);
  target.add("client_encoding", GetDatabaseEncodingName());
  target.add("fallback_application_name", "streamfilter");
  target.add("options", session_options(&connection->options));
  connection->needs_password =
      !superuser_arg(connection->key.user) && requires_password(mapping->options);
  if (!target.has_password && connection->needs_password) raise_password_required(connection);
  return target;
}

// ---- an attempt ---------------------------------------------------------------------------------

// Otherwise notices of the other server would go to our log. On an idle connection, also stores an
// error: the server's last message before it closes the socket.
void take_notice(void* connection, const PGresult* notice) {
  if (is_fatal(notice)) static_cast<Connection*>(connection)->dismissed = true;
  if (has_sqlstate(notice, kOverfullFilter)) static_cast<Connection*>(connection)->overfull = true;
  if (has_sqlstate(notice, kLateEvent)) static_cast<Connection*>(connection)->late = true;
}

// The entry owns the connection under construction, so an error does not leak it.
void start_connecting(Connection* connection) {
  const Target target = make_target(connection);
  if (!AcquireExternalFD())
    ereport(ERROR, errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
            errmsg("could not connect to server \"%s\"", connection->name),
            errdetail("There are too many open files on this server."));
  connection->pg = PQconnectStartParams(target.keywords, target.values, 0);
  if (connection->pg == nullptr) {
    ReleaseExternalFD();
    ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
  }
  move_traffic(connection, TrafficEvent::begins);
  connection->inflow = {0, kMaxUnforeseen};
  connection->polling = PGRES_POLLING_WRITING;
  PQsetErrorVerbosity(connection->pg, PQERRORS_VERBOSE);
  connection->dismissed = connection->spoke = false;
  PQsetNoticeReceiver(connection->pg, take_notice, connection);
}

// State of an attempt; `failed` includes refusals. One that is closed already has failed for good.
enum class Progress : uint8 { stands, pending, failed };

bool is_socket_ready(PGconn* pg, bool write) {
  pollfd ready = {PQsocket(pg), static_cast<short>(write ? POLLOUT : POLLIN), 0};
  return poll(&ready, 1, 0) > 0;
}

// What libpq itself refuses has no SQLSTATE: a certificate, a server without SSL, one that speaks
// something else. It has read something then; of a server that hangs up it has not. A host that is
// not of the wanted kind is left to target_session_attrs, behind SSL.
// False: the server sends more than a start takes, and the attempt is closed.
bool go_on_connecting(Connection* connection) {
  const bool may_tell =
      !connection->picks_host || PQstatus(connection->pg) == CONNECTION_SSL_STARTUP;
  const int64 before = connection->inflow.taken;
  const auto read = [&] { connection->polling = PQconnectPoll(connection->pg); };
  if (!read_within(&connection->inflow, connection->pg, read)) return fail_of_flood(connection);
  connection->spoke = may_tell && connection->inflow.taken > before;
  return true;
}

Progress poll_connection(Connection* connection, int64 until) {
  PGconn* pg = connection->pg;
  if (PQstatus(pg) == CONNECTION_BAD) return Progress::failed;
  while (connection->polling != PGRES_POLLING_OK) {
    if (connection->polling == PGRES_POLLING_FAILED || PQsocket(pg) < 0) return Progress::failed;
    connection->accepted = PQstatus(pg) != CONNECTION_STARTED;
    const bool write = connection->polling == PGRES_POLLING_WRITING;
    if (!wait_for_socket(pg, write, until, Manner::interruptible)) return Progress::pending;
    if (is_socket_ready(pg, write) && !go_on_connecting(connection)) return Progress::failed;
  }
  return Progress::stands;
}

bool has_class(const char* sqlstate, const char* prefix) {
  return sqlstate != nullptr && strncmp(sqlstate, prefix, strlen(prefix)) == 0;
}

[[noreturn]] void raise_refused(Connection* connection, const char* message) {
  message = first_peer_line(message);
  disconnect(connection);
  ereport(ERROR, errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
          errmsg("could not connect to server \"%s\"", connection->name),
          errdetail_internal("%s", message),
          has_class(find_sqlstate(message), "53")
              ? errhint("Raise max_connections there, or let fewer sessions use the server.")
          : has_class(find_sqlstate(message), "08")
              ? errhint("Is it a pooler? %s", kPoolerHint)
              : errhint("Correct the options of server %s with ALTER SERVER, or of its user "
                        "mapping with ALTER USER MAPPING.",
                        quote_identifier(connection->name)));
}

// Would another attempt fail, too? Then it is an error and no loss: password, user, database.
bool is_refused(PGconn* pg, const char* sqlstate) {
  return PQconnectionNeedsPassword(pg) || has_class(sqlstate, "28") || has_class(sqlstate, "3D") ||
         has_class(sqlstate, "42");
}

// Did no server answer, or only one that starts or stops? Whatever else it says is an error.
bool is_silent(const Connection* connection, const char* sqlstate) {
  return sqlstate == nullptr ? !connection->spoke : has_class(sqlstate, "57P03");
}

// The attempt has failed. True: try again, because the server may have room for another connection
// soon, or has ended this one. False: it is unreachable, or has hung up on every attempt so far.
bool may_repeat_attempt(Connection* connection, int64 until) {
  const int64 now = monotonic_us();
  const char* message = PQerrorMessage(connection->pg);
  const char* sqlstate = find_sqlstate(message);
  if (!is_silent(connection, sqlstate)) {
    note_reached(connection->key.server);
    if (is_refused(connection->pg, sqlstate) || now >= connection->deadline)
      raise_refused(connection, message);
    fail(connection, Failure::ended, message);
    return connection->refused = true;
  }
  connection->refused = false;
  const bool again = sqlstate == nullptr && connection->accepted && now < until;
  fail(connection, again ? Failure::ended : Failure::unreachable, message);
  return again;
}

// ---- the first exchange -------------------------------------------------------------------------

constexpr char kSetUp[] =
    "SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.pg_backend_pid(), e.extversion "
    "FROM pg_catalog.pg_extension e "
    "JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'streamfilter'";

constexpr Size kMaxQuotedName = 2 * NAMEDATALEN + 2;
constexpr Size kMaxInteger = 11;
constexpr Size kMaxVersion = sizeof(Connection::version) - 1;
constexpr ColumnShape kSetUpColumns[] = {{TEXTOID, false, false, kMaxQuotedName},
                                         {INT4OID, false, false, kMaxInteger},
                                         {TEXTOID, false, false, kMaxVersion}};
constexpr RowShape kSetUpRow = {kSetUpColumns, lengthof(kSetUpColumns), 0, 1};

struct SetUp {
  char schema[kMaxQuotedName + 1];  // of the extension, quoted; empty: it is not installed
  int backend;
  char version[kMaxVersion + 1];
};

void take_set_up(void* context, const PGresult* result) {
  if (PQntuples(result) != 1) return;
  auto* set_up = static_cast<SetUp*>(context);
  strlcpy(set_up->schema, PQgetvalue(result, 0, 0), sizeof set_up->schema);
  set_up->backend = atoi(PQgetvalue(result, 0, 1));
  strlcpy(set_up->version, PQgetvalue(result, 0, 2), sizeof set_up->version);
}

// Enters pipeline mode, and prepares the calls. False: the connection has failed.
bool set_up(Connection* connection) {
  PQsetErrorVerbosity(connection->pg, PQERRORS_DEFAULT);
  if (PQsetnonblocking(connection->pg, 1) != 0 || !PQenterPipelineMode(connection->pg))
    return fail(connection);
  SetUp told = {};
  if (!queue_command(connection, kSetUp) || !exchange(connection, &kSetUpRow, take_set_up, &told))
    return false;
  connection->backend = told.backend;
  strlcpy(connection->version, told.version, sizeof connection->version);
  const bool found = connection->error == nullptr && told.schema[0] != '\0';
  if (found) {
    if (!prepare_calls(connection, told.schema) || !exchange(connection)) return false;
    if (connection->error == nullptr) return connection->ready = true;
  }
  const PGresult* error = connection->error;
  const char* said = error != nullptr ? first_peer_line(PQresultErrorMessage(error)) : nullptr;
  const bool pooled = error != nullptr && is_of_pooler(error);
  disconnect(connection);
  ereport(ERROR, errcode(ERRCODE_FDW_ERROR),
          errmsg("server \"%s\" cannot hold filters", connection->name),
          said == nullptr ? errdetail("The database there has no extension streamfilter.")
                          : errdetail("It says: %s", said),
          pooled            ? errhint("Is it a pooler? %s", kPoolerHint)
          : said == nullptr ? errhint("CREATE EXTENSION streamfilter there.")
                            : errhint("Install the version of this server there."));
}

// ---- from nothing to ready ----------------------------------------------------------------------

void check_password_used(Connection* connection) {
  if (!connection->needs_password || PQconnectionUsedPassword(connection->pg)) return;
  disconnect(connection);
  raise_password_required(connection);
}

// If no host had to be a primary, a standby may have answered for a lost one.
bool is_standby(const Connection* connection) {
  const char* standby = PQparameterStatus(connection->pg, "in_hot_standby");
  return standby != nullptr && strcmp(standby, "on") == 0;
}

// Finishes an established connection. False: it has failed after all.
bool welcome(Connection* connection) {
  check_password_used(connection);
  if (is_standby(connection)) {
    fail(connection, Failure::unreachable, kIsStandby);
    return false;
  }
  move_traffic(connection, TrafficEvent::welcomed);
  connection->warned = false;
  forget_relations(connection);
  return set_up(connection);
}

// An attempt under way continues for a moment at least.
void set_deadline(Connection* connection, int64 now) {
  const bool goes_on = connection->traffic == Traffic::connecting;
  if (!goes_on) {
    connection->refused = false;
    connection->reason[0] = '\0';
    connection->deadline = 0;
  }
  const int timeout = goes_on ? kProbeWait : connection->options.connect_timeout;
  connection->deadline = Max(connection->deadline, add_ms(now, timeout));
}

// An attempt has not led to a usable connection. True: another one may be made.
bool may_go_on(Connection* connection, Progress progress, int64 until) {
  const int64 now = monotonic_us();
  switch (progress) {
    case Progress::failed:
      return connection->pg != nullptr && may_repeat_attempt(connection, until);
    case Progress::pending:
      // What it has said counts, also while sessions wait only a moment for it.
      if (connection->refused) raise_refused(connection, connection->reason);
      if (now < connection->deadline) return false;
      fail(connection, Failure::unreachable,
           pstrdup(connection->reason[0] != '\0' ? connection->reason : "it does not answer"));
      return false;
    case Progress::stands:
      if (connection->failure == Failure::ended && now < until) return true;
      note_unreachable(connection->key.server);
      return false;
  }
  return false;
}

// False: the server is unreachable, or it is too early to try again, or to know.
bool connect(Connection* connection) {
  if (connection->traffic == Traffic::connecting && !connection->valid) disconnect(connection);
  if (connection->pg == nullptr) {
    if (!may_connect(connection->key.server)) return false;
    read_server(connection);
  }
  const int64 now = monotonic_us();
  const bool probing = unreachable_since(connection->key.server) != 0;
  set_deadline(connection, now);
  const int64 until =
      probing ? Min(add_ms(now, kProbeWait), connection->deadline) : connection->deadline;
  for (;; pause(kRepeatPause, wait_event(Wait::connect))) {
    if (connection->pg == nullptr) start_connecting(connection);
    const Progress progress = poll_connection(connection, until);
    if (progress == Progress::stands && welcome(connection)) return true;
    if (!may_go_on(connection, progress, until)) return false;
  }
}

// ---- several at once ----------------------------------------------------------------------------

// Is there an unfinished attempt? Extends its deadline if it is new.
bool begins_or_goes_on(Connection* connection) {
  if (connection->pg == nullptr) {
    if (!may_connect(connection->key.server)) return false;
    read_server(connection);
    set_deadline(connection, monotonic_us());
    start_connecting(connection);
  }
  return connection->traffic == Traffic::connecting && connection->valid;
}

// As long as connect() would wait.
int64 end_of_wait(const Connection* connection, int64 now) {
  if (unreachable_since(connection->key.server) == 0) return connection->deadline;
  return Min(connection->deadline, add_ms(now, kProbeWait));
}

bool has_resolved(const Connection* connection) {
  return connection->polling == PGRES_POLLING_OK || connection->polling == PGRES_POLLING_FAILED ||
         PQstatus(connection->pg) == CONNECTION_BAD || PQsocket(connection->pg) < 0;
}

// Advances attempts whose sockets are ready.
void advance(Connection** pending, uint32 count, int ms) {
  auto* sockets = static_cast<pollfd*>(palloc(sizeof(pollfd) * count));
  for (uint32 i = 0; i < count; ++i) {
    const bool write = pending[i]->polling == PGRES_POLLING_WRITING;
    sockets[i] = {PQsocket(pending[i]->pg), static_cast<short>(write ? POLLOUT : POLLIN), 0};
  }
  const bool any = poll(sockets, count, ms) > 0;
  for (uint32 i = 0; i < count && any; ++i) {
    if (sockets[i].revents == 0) continue;
    pending[i]->accepted = PQstatus(pending[i]->pg) != CONNECTION_STARTED;
    if (go_on_connecting(pending[i]) && pending[i]->polling == PGRES_POLLING_OK)
      note_reached(pending[i]->key.server);
  }
  pfree(sockets);
  CHECK_FOR_INTERRUPTS();
}

// Keeps established connections that the transaction still needs.
void let_go(Connection* connection) {
  if (!stands(connection)) return;
  const bool in_transaction = connection->level > 0;
  if (is_busy(connection) && (!in_transaction || !settle(connection)))
    return disconnect(connection);
  if (!connection->changed && (!connection->valid || has_ended(connection)))
    return disconnect(connection);
}

void warn_unreachable(Connection* connection) {
  if (connection->warned) return;
  connection->warned = true;
  defer_message(Message::server_unreachable, connection->name, connection->reason);
  say_deferred_messages();
}

[[noreturn]] void raise_lost(const Connection* connection) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("connection to server \"%s\" was lost within the transaction", connection->name),
          errdetail("What the transaction has changed in filters there is rolled back."),
          errhint("Repeat the transaction."));
}

// A definition changes on all servers or on none: all of them must be there when the first commits.
void ask_whether_there(Connection* connection) {
  if (connection->altered && queue_command(connection, "SET CONSTRAINTS ALL IMMEDIATE") &&
      exchange(connection) && connection->error != nullptr)
    raise_remote(connection);
}

void prepare_commit(Connection* connection) {
  if (stands(connection) && connection->level > 0 && settle(connection) && connection->changed &&
      has_ended(connection))
    fail(connection, Failure::ended, "it has ended");
  if (stands(connection) && connection->level > 0) ask_whether_there(connection);
  if (connection->lost &&
      (connection->removed || connection->required || ensure_connected(connection)))
    raise_lost(connection);
  if (connection->changed) ForceSyncCommit();
}

}  // namespace

bool ensure_connected(Connection* connection) {
  let_go(connection);
  if (!stands(connection) && !connect(connection)) {
    warn_unreachable(connection);
    return false;
  }
  if (connection->lost) raise_lost(connection);
  return true;
}

void connect_together(Connection** connections, int count) {
  auto** pending =
      static_cast<Connection**>(palloc(sizeof(Connection*) * static_cast<Size>(Max(count, 1))));
  int wanting = 0;
  for (int i = 0; i < count; ++i)
    if (!stands(connections[i]) &&
        std::find(pending, pending + wanting, connections[i]) == pending + wanting &&
        begins_or_goes_on(connections[i]))
      pending[wanting++] = connections[i];
  const int64 begun = monotonic_us();
  for (;;) {
    const int64 now = monotonic_us();
    int64 end = now;
    int left = 0;
    for (int i = 0; i < wanting; ++i) {
      const int64 its_end = end_of_wait(pending[i], begun);
      if (has_resolved(pending[i]) || its_end <= now) continue;
      end = Max(end, its_end);
      pending[left++] = pending[i];
    }
    wanting = left;
    if (wanting == 0) break;
    const auto ms = static_cast<int>(ms_until(now, end));
    advance(pending, static_cast<uint32>(wanting), Min(ms, kGlance));
  }
  pfree(pending);
}

void raise_always_ends(const Connection* connection) {
  ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("server \"%s\" ends every connection", connection->name),
          errdetail_internal("%s", first_peer_line(connection->reason)));
}

void prepare_remote_commit() { visit_connections(prepare_commit); }

}  // namespace streamfilter::pg
