#include "pg/server/postgres.hpp"

extern "C" {
#include "libpq/pqformat.h"
#include "port/pg_bswap.h"
}

#include "pg/remote/pipeline.hpp"
#include "pg/remote/protocol.hpp"
#include "pg/remote/remote_transaction.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kNames[] = {"test", "seen", "claim", "put", "erase"};
constexpr Oid kTypes[] = {REGCLASSOID, INT8ARRAYOID, INT8ARRAYOID, FLOAT8ARRAYOID};
constexpr char kDefine[] = "define";
constexpr char kValue[] = "value";

bool changes(Call call) { return call != Call::test; }

// An array of 8-byte values in the binary form that array_recv reads.
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

  // Behind the length that pq_begintypsend leaves room for.
  const char* data() const { return buffer_.data + VARHDRSZ; }
  int length() const { return buffer_.len - VARHDRSZ; }

 private:
  StringInfoData buffer_;
};

uint64 bits_of(double value) {
  uint64 bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool queue_call(RemoteCall* call) {
  WordArray hashes(INT8OID, call->count);
  for (int i = 0; i < call->count; ++i) hashes.add(call->elements[i].hash);
  const char* values[] = {call->filter, hashes.data(), nullptr, nullptr};
  int lengths[] = {0, hashes.length(), 0, 0};
  const int formats[] = {0, 1, 1, 1};
  if (call->with_time) {
    WordArray times(INT8OID, call->count);
    for (int i = 0; i < call->count; ++i) times.add(static_cast<uint64>(call->elements[i].time));
    values[2] = times.data();
    lengths[2] = times.length();
  }
  if (call->with_importance) {
    WordArray importances(FLOAT8OID, call->count);
    for (int i = 0; i < call->count; ++i) importances.add(bits_of(call->elements[i].importance));
    values[3] = importances.data();
    lengths[3] = importances.length();
  }
  call->sent = static_cast<uint64>(lengths[1] + lengths[2] + lengths[3]);
  return PQsendQueryPrepared(call->connection->pg, kNames[static_cast<int>(call->call)],
                             lengthof(values), values, lengths, formats, 0) == 1;
}

// Sends a call; false: lost.
bool begin_call(RemoteCall* call, int* commands) {
  Connection* connection = call->connection;
  *commands = 0;
  if (!ensure_connected(connection)) return false;
  connection->changed |= changes(call->call);
  if (changes(call->call) || connection->level > 0) *commands = queue_transaction(connection);
  if (connection->pg == nullptr) return false;
  if (!queue_call(call)) {
    lose(connection, PQerrorMessage(connection->pg));
    return false;
  }
  return send_queued(connection, Manner::interruptible);
}

struct Reader {
  RemoteCall* call;
  int number;  // of the command whose answer is wanted
  bool ok;
};

// The text form of boolean[]: {t,f,NULL,...}.
void read_answers(void* context, int number, const PGresult* result) {
  auto* reader = static_cast<Reader*>(context);
  if (number != reader->number || PQntuples(result) != 1 || PQnfields(result) != 1) return;
  RemoteCall* call = reader->call;
  const char* at = PQgetvalue(result, 0, 0);
  call->received = static_cast<uint64>(PQgetlength(result, 0, 0));
  int count = 0;
  for (at += *at == '{'; *at != '\0' && *at != '}' && count < call->count; ++at) {
    call->answers[count++] = static_cast<Answer>(*at);
    at += strcspn(at, ",}");
    if (*at == '}') break;
  }
  reader->ok = count == call->count;
}

struct Text {
  int number;
  MemoryContext context;
  char* definition;
  bool made;
};

void read_definition(void* context, int number, const PGresult* result) {
  auto* text = static_cast<Text*>(context);
  if (number != text->number || PQntuples(result) != 1 || PQnfields(result) != 2) return;
  text->definition = MemoryContextStrdup(text->context, PQgetvalue(result, 0, 0));
  text->made = PQgetvalue(result, 0, 1)[0] == 't';
}

// A value in binary form.
struct Bytes {
  int number;
  StringInfo buffer;
};

void read_bytes(void* context, int number, const PGresult* result) {
  auto* bytes = static_cast<Bytes*>(context);
  if (number == bytes->number && PQntuples(result) == 1)
    appendBinaryStringInfo(bytes->buffer, PQgetvalue(result, 0, 0), PQgetlength(result, 0, 0));
}

}  // namespace

void run_calls(RemoteCall* calls, int count) {
  auto* commands = static_cast<int*>(palloc(sizeof(int) * Max(count, 1)));
  for (int i = 0; i < count; ++i) calls[i].lost = !begin_call(&calls[i], &commands[i]);
  Connection* failed = nullptr;
  for (int i = 0; i < count; ++i) {
    if (calls[i].lost) continue;
    Connection* connection = calls[i].connection;
    Reader reader = {&calls[i], commands[i], false};
    calls[i].lost = !receive(connection, Manner::interruptible, read_answers, &reader);
    if (calls[i].lost) continue;
    if (connection->error != nullptr) {
      if (failed == nullptr) failed = connection;
    } else if (!reader.ok) {
      ereport(ERROR, errcode(ERRCODE_PROTOCOL_VIOLATION),
              errmsg("server \"%s\" has not answered for every key", connection->name));
    }
  }
  if (failed != nullptr) raise_remote(failed);
  pfree(commands);
}

const char* define_slices(Connection* connection, const SliceDefinition* slices, bool* made) {
  const char* values[] = {slices->schema,   slices->name,        slices->definition,
                          slices->conflict, slices->persistence, slices->producer};
  if (!ensure_connected(connection)) return nullptr;
  // Within a transaction the relation is part of it, and lasts only if that commits.
  const int commands = connection->level > 0 ? queue_transaction(connection) : 0;
  if (connection->pg == nullptr) return nullptr;
  if (PQsendQueryPrepared(connection->pg, kDefine, lengthof(values), values, nullptr, nullptr, 0) !=
      1) {
    lose(connection, PQerrorMessage(connection->pg));
    return nullptr;
  }
  Text text = {commands, CurrentMemoryContext, nullptr, false};
  if (!send_queued(connection, Manner::interruptible) ||
      !receive(connection, Manner::interruptible, read_definition, &text))
    return nullptr;
  if (connection->error != nullptr) raise_remote(connection);
  *made = text.made;
  return text.definition;
}

bool run_statement(Connection* connection, const char* statement) {
  if (!ensure_connected(connection)) return false;
  queue_transaction(connection);
  connection->changed = true;
  if (connection->pg == nullptr) return false;
  if (PQsendQueryParams(connection->pg, statement, 0, nullptr, nullptr, nullptr, nullptr, 0) != 1) {
    lose(connection, PQerrorMessage(connection->pg));
    return false;
  }
  if (!send_queued(connection, Manner::interruptible) ||
      !receive(connection, Manner::interruptible))
    return false;
  if (connection->error != nullptr) raise_remote(connection);
  return true;
}

bool fetch_value(Connection* connection, const char* filter, StringInfo bytes) {
  if (!ensure_connected(connection)) return false;
  Bytes found = {connection->level > 0 ? queue_transaction(connection) : 0, bytes};
  if (connection->pg == nullptr) return false;
  if (PQsendQueryPrepared(connection->pg, kValue, 1, &filter, nullptr, nullptr, 1) != 1) {
    lose(connection, PQerrorMessage(connection->pg));
    return false;
  }
  if (!send_queued(connection, Manner::interruptible) ||
      !receive(connection, Manner::interruptible, read_bytes, &found))
    return false;
  if (connection->error != nullptr) raise_remote(connection);
  return true;
}

void prepare_calls(Connection* connection, const char* schema) {
  for (const char* name : kNames) {
    const char* query = psprintf("SELECT %s.streamfilter_hashes_%s($1, $2, $3, $4)", schema, name);
    PQsendPrepare(connection->pg, name, query, lengthof(kTypes), kTypes);
  }
  const char* define = psprintf(
      "SELECT definition, made FROM %s.streamfilter_hashes_define($1, $2, $3, $4, $5, $6)", schema);
  PQsendPrepare(connection->pg, kDefine, define, 0, nullptr);
  PQsendPrepare(connection->pg, kValue, psprintf("SELECT %s.streamfilter_value($1)", schema), 1,
                kTypes);
}

}  // namespace streamfilter::pg
