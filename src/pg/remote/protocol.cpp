#include "pg/server/postgres.hpp"

extern "C" {
#include "libpq/pqformat.h"
}

#include <bit>

#include "core/filter/definition_text.hpp"
#include "pg/catalog/producer.hpp"
#include "pg/remote/protocol.hpp"
#include "pg/remote/remote_transaction.hpp"
#include "pg/server/monotonic.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kNames[] = {"test", "seen",  "reserve",
                                  "put",  "erase", "take_back"};  // of streamfilter_hashes_NAME
constexpr Oid kTypes[] = {REGCLASSOID, INT8ARRAYOID, INT8ARRAYOID, FLOAT8ARRAYOID};
constexpr char kDefine[] = "define";
constexpr char kValue[] = "value";

bool changes(Call call) { return call != Call::test; }

// An array of 8-byte values in the binary form of array_recv.
class WordArray {
 public:
  WordArray(Oid type, int count) {
    pq_begintypsend(&buffer_);
    pq_sendint32(&buffer_, 1);  // dimensions
    pq_sendint32(&buffer_, 0);  // no NULLs
    pq_sendint32(&buffer_, type);
    pq_sendint32(&buffer_, static_cast<uint32>(count));
    pq_sendint32(&buffer_, 1);  // first subscript
  }

  void add(uint64 word) {
    pq_sendint32(&buffer_, sizeof word);
    pq_sendint64(&buffer_, word);
  }

  // Behind the length word of pq_begintypsend.
  const char* data() const { return buffer_.data + VARHDRSZ; }
  int length() const { return buffer_.len - VARHDRSZ; }

 private:
  StringInfoData buffer_;
};

// Parameters of a call: relation, hashes, times, importances.
constexpr int kParameters = lengthof(kTypes);

struct Parameter {
  const char* values[kParameters];
  int lengths[kParameters];
  static constexpr int kFormats[kParameters] = {0, 1, 1, 1};

  void set(int number, const WordArray& array) {
    values[number] = array.data();
    lengths[number] = array.length();
  }
};

Parameter parameters_of(const RemoteCall* call) {
  const Element* elements = call->elements;
  Parameter result = {};
  result.values[0] = call->relation;
  WordArray hashes(INT8OID, call->count);
  for (int i = 0; i < call->count; ++i) hashes.add(elements[i].hash);
  result.set(1, hashes);
  if (call->with_time) {
    WordArray times(INT8OID, call->count);
    for (int i = 0; i < call->count; ++i) times.add(static_cast<uint64>(elements[i].time));
    result.set(2, times);
  }
  if (call->with_importance) {
    WordArray importances(FLOAT8OID, call->count);
    for (int i = 0; i < call->count; ++i)
      importances.add(std::bit_cast<uint64>(elements[i].importance));
    result.set(3, importances);
  }
  return result;
}

bool queue_call(RemoteCall* call) {
  const Parameter parameters = parameters_of(call);
  call->sent = 0;
  for (const int length : parameters.lengths) call->sent += static_cast<uint64>(length);
  return PQsendQueryPrepared(call->connection->pg, kNames[static_cast<int>(call->call)],
                             kParameters, parameters.values, parameters.lengths,
                             Parameter::kFormats, 0) == 1;
}

// Queues a prepared statement with parameters in text form. False: the connection has failed.
bool queue_prepared(Connection* connection, const char* name, int count, const char* const* values,
                    int result_format) {
  return PQsendQueryPrepared(connection->pg, name, count, values, nullptr, nullptr,
                             result_format) == 1 ||
         fail(connection);
}

bool queue_preparation(Connection* connection, const char* name, const char* query, int types) {
  return PQsendPrepare(connection->pg, name, query, types, kTypes) == 1 || fail(connection);
}

constexpr uint64 kWarning = 1024;  // bytes, beside the answers

// Sends a call; false: the connection has failed.
bool begin_call(RemoteCall* call, int64 start) {
  Connection* connection = call->connection;
  call->failure = Failure::none;
  call->conflict = false;
  if ((changes(call->call) || connection->level > 0) && !queue_transaction(connection))
    return false;
  if (call->gives_up_early && !queue_savepoint_with_timeout(connection)) return false;
  return (queue_call(call) || fail(connection)) &&
         send_queued(connection, max_answers_length(call->count) + kWarning, start);
}

// ---- answers ------------------------------------------------------------------------------------

constexpr ColumnShape kDefinitionColumns[] = {{TEXTOID, false, true, kMaxDefinitionText},
                                              {BOOLOID, false, false, 1},
                                              {INT8OID, false, true, 20},
                                              {INT8OID, false, true, 20}};
constexpr RowShape kDefinitionRow = {kDefinitionColumns, lengthof(kDefinitionColumns), 1, 1};
// The type has another OID in every database.
constexpr ColumnShape kValueColumn = {kAnyType, true, false, MaxAllocSize - 1};

struct CallReader {
  RemoteCall* call;
  bool ok;
};

void take_answers(void* context, const PGresult* result) {
  if (PQresultStatus(result) != PGRES_TUPLES_OK) return;
  auto* reader = static_cast<CallReader*>(context);
  RemoteCall* call = reader->call;
  call->received = static_cast<uint64>(PQgetlength(result, 0, 0));
  reader->ok = read_answers(PQgetvalue(result, 0, 0), call->received, call->call == Call::reserve,
                            call->answers, call->count);
}

// False: the connection has failed.
bool end_call(RemoteCall* call) {
  Connection* connection = call->connection;
  const ColumnShape column = {BOOLARRAYOID, false, false, max_answers_length(call->count)};
  const RowShape row = {&column, 1, 1, 1};
  CallReader reader = {call, false};
  if (!receive(connection, Manner::interruptible, &row, take_answers, &reader)) return false;
  if (connection->error != nullptr) return true;
  if (!reader.ok)
    raise_protocol_violation(connection, "It has not answered for every key, or in other words");
  connection->changed |= changes(call->call);
  connection->removed |= call->call == Call::erase;
  return true;
}

bool is_lock_conflict(const PGresult* error) {
  return has_sqlstate(error, ERRCODE_LOCK_NOT_AVAILABLE) ||
         has_sqlstate(error, ERRCODE_T_R_DEADLOCK_DETECTED);
}

struct DefinitionReader {
  char* definition;
  bool made;
  PartState state;
  bool ok;
};

void take_definition(void* context, const PGresult* result) {
  if (PQresultStatus(result) != PGRES_TUPLES_OK) return;
  auto* reader = static_cast<DefinitionReader*>(context);
  reader->ok = read_flag(PQgetvalue(result, 0, 1), static_cast<Size>(PQgetlength(result, 0, 1)),
                         &reader->made);
  strlcpy(reader->definition, PQgetvalue(result, 0, 0), kMaxDefinitionText);
  reader->state = {strtoll(PQgetvalue(result, 0, 2), nullptr, 10),
                   strtoll(PQgetvalue(result, 0, 3), nullptr, 10)};
}

constexpr char kOwnerQuery[] =
    "SELECT option_value, pg_catalog.pg_has_role(c.relowner, 'USAGE') FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_foreign_table t ON t.ftrelid OPERATOR(pg_catalog.=) c.oid "
    "CROSS JOIN LATERAL pg_catalog.pg_options_to_table(t.ftoptions) "
    "WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1) "
    "AND option_name OPERATOR(pg_catalog.=) 'producer'";
constexpr Size kMaxProducer = 1024 * 1024;
constexpr ColumnShape kOwnerColumns[] = {{TEXTOID, false, false, kMaxProducer},
                                         {BOOLOID, false, false, 1}};
constexpr RowShape kOwnerRow = {kOwnerColumns, lengthof(kOwnerColumns), 0, 1};

void take_owner(void* context, const PGresult* result) {
  auto* ownership = static_cast<Ownership*>(context);
  // A hostile peer may let other results follow the rows.
  if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) == 0) return;
  take_value(&ownership->producer, result);
  ownership->owned = PQgetvalue(result, 0, 1)[0] == 't' ? Owned::by_us : Owned::by_others;
}

void add_returned(void* context, const PGresult* result) {
  if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
    *static_cast<uint64*>(context) += strtoull(PQgetvalue(result, 0, 0), nullptr, 10);
}

// Before a query that only looks: it has to see what the transaction there has changed, if any.
bool join_transaction(Connection* connection) {
  return connection->level == 0 || queue_transaction(connection);
}

// Sends the queue, and raises the server's error. False: the connection has failed.
bool run_queued(Connection* connection, bool queued, const RowShape* rows = nullptr,
                ResultVisitor visit = ignore_result, void* context = nullptr) {
  if (!queued || !exchange(connection, rows, visit, context)) return false;
  if (connection->error != nullptr) raise_remote(connection);
  return true;
}

// The row of a function that returns bigint or void.
constexpr ColumnShape kResultColumn = {kAnyType, false, true, 1024};
constexpr RowShape kResultRow = {&kResultColumn, 1, 0, 1};

// Calls a function of the extension that changes the relation there, in the transaction. False: the
// connection has failed.
bool run_function(Connection* connection, const char* query,
                  std::initializer_list<const char*> parameters,
                  ResultVisitor visit = ignore_result, void* context = nullptr) {
  if (!queue_transaction(connection) || !queue_command(connection, query, parameters) ||
      !exchange(connection, &kResultRow, visit, context))
    return false;
  if (connection->error != nullptr && has_sqlstate(connection->error, ERRCODE_UNDEFINED_FUNCTION))
    ereport(
        ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
        errmsg("server \"%s\" has a version of streamfilter that cannot do this", connection->name),
        errdetail("Its version is %s.", connection->version),
        errhint("Install the version of this server there, restart it, and type there: ALTER "
                "EXTENSION streamfilter UPDATE."));
  if (connection->error != nullptr) raise_remote(connection);
  connection->changed = connection->removed = true;
  return true;
}

}  // namespace

void run_calls(RemoteCall* calls, int count) {
  const int64 start = monotonic_us();
  for (int i = 0; i < count; ++i)
    if (!begin_call(&calls[i], start)) calls[i].failure = calls[i].connection->failure;
  auto** sent =
      static_cast<Connection**>(palloc(sizeof(Connection*) * static_cast<Size>(Max(count, 1))));
  for (int i = 0; i < count; ++i) sent[i] = calls[i].connection;
  if (count > 1) wait_together(sent, count, Manner::interruptible);
  Connection* refused = nullptr;
  for (int i = 0; i < count; ++i) {
    if (calls[i].failure != Failure::none) continue;
    if (!end_call(&calls[i]))
      calls[i].failure = calls[i].connection->failure;
    else if (calls[i].gives_up_early && is_lock_conflict(calls[i].connection->error))
      calls[i].conflict = true;
    else if (calls[i].connection->error != nullptr && refused == nullptr)
      refused = calls[i].connection;
  }
  if (refused != nullptr) raise_remote(refused);
}

const char* define_slices(Connection* connection, const SliceDefinition* slices, bool* made,
                          PartState* state) {
  const char* values[] = {slices->schema,   slices->name,        slices->definition,
                          slices->conflict, slices->persistence, slices->producer};
  DefinitionReader reader = {static_cast<char*>(palloc(kMaxDefinitionText)), false, {}, false};
  // Within a transaction the relation lasts only if that commits.
  const bool queued = join_transaction(connection) &&
                      queue_prepared(connection, kDefine, lengthof(values), values, 0);
  if (!run_queued(connection, queued, &kDefinitionRow, take_definition, &reader)) return nullptr;
  if (!reader.ok) raise_protocol_violation(connection, "It has not told what it has made");
  *made = reader.made;
  if (state != nullptr) *state = reader.state;
  return reader.definition;
}

bool read_owner(Connection* connection, const char* relation, Ownership* ownership) {
  *ownership = {};
  const bool queued =
      join_transaction(connection) && queue_command(connection, kOwnerQuery, {relation});
  if (!run_queued(connection, queued, &kOwnerRow, take_owner, ownership)) return false;
  const ReceivedValue& producer = ownership->producer;
  check_memory(producer);
  if (producer.found && pg_verifymbstr(producer.bytes, producer.length, true))
    ownership->identity = read_producer(producer.bytes)->identity;
  return true;
}

bool change_slices(Connection* connection, const char* command, bool alters) {
  if (!run_queued(connection, queue_transaction(connection) && queue_command(connection, command)))
    return false;
  connection->changed = connection->removed = true;
  connection->altered |= alters;
  forget_relations(connection);
  return true;
}

bool alter_slices(Connection* connection, const char* relation, const SliceDefinition* to) {
  const char* query =
      psprintf("SELECT %s.streamfilter_hashes_alter($1, $2, $3, $4)", connection->schema);
  if (!run_function(connection, query, {relation, to->conflict, to->persistence, to->producer}))
    return false;
  connection->altered = true;
  return true;
}

bool call_slices(Connection* connection, const char* function, const char* relation, uint64* sum) {
  const char* query = psprintf("SELECT %s.%s($1)", connection->schema, function);
  return run_function(connection, query, {relation}, add_returned, sum);
}

// Bytes that the state of a filter of this memory has at most: with a header, and with room for
// other versions.
constexpr uint64 max_state_bytes(uint64 memory) { return 2 * memory; }

bool fetch_value(Connection* connection, const char* filter, uint64 memory, StringInfo bytes) {
  ReceivedValue reader = {};
  const RowShape row = {&kValueColumn, 1, 1, 1, max_state_bytes(memory)};
  const bool queued =
      join_transaction(connection) && queue_prepared(connection, kValue, 1, &filter, 1);
  if (!run_queued(connection, queued, &row, take_value, &reader)) return false;
  check_memory(reader);
  *bytes = {reader.bytes, reader.length, reader.length + 1, 0};
  return true;
}

bool prepare_calls(Connection* connection, const char* schema) {
  strlcpy(connection->schema, schema, sizeof connection->schema);
  for (const char* name : kNames) {
    const char* query = psprintf("SELECT %s.streamfilter_hashes_%s($1, $2, $3, $4)", schema, name);
    if (!queue_preparation(connection, name, query, lengthof(kTypes))) return false;
  }
  const char* define = psprintf(
      "SELECT definition, made, life, number FROM %s.streamfilter_hashes_define($1, $2, $3, $4, "
      "$5, $6)",
      schema);
  return queue_preparation(connection, kDefine, define, 0) &&
         queue_preparation(connection, kValue, psprintf("SELECT %s.streamfilter_value($1)", schema),
                           1);
}

}  // namespace streamfilter::pg
