#include "pg/server/postgres.hpp"

#include "pg/server/deferred_messages.hpp"
#include "pg/server/no_raise.hpp"

namespace streamfilter::pg {

bool has_deferred_messages = false;

namespace {

constexpr int kMaxKept = 8;
constexpr Size kMaxReason = 256;

struct Kept {
  Message message;
  TimestampTz time;
  char server[NAMEDATALEN];
  char reason[kMaxReason];
};

Kept kept[kMaxKept];
int count = 0;
int dropped = 0;  // messages without a place

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\t') || byte == 0x7f;
}

// Copies the first line, as far as whole characters fit. Invalid bytes and terminal control
// characters become question marks, because peers and libpq promise no encoding. Cannot raise.
void copy_text(char* to, Size capacity, const char* from) {
  const int encoding = GetDatabaseEncoding();
  const char* end = from + strcspn(from, "\n");
  char* last = to + capacity - 1;
  while (from < end) {
    const int length = pg_encoding_verifymbchar(encoding, from, static_cast<int>(end - from));
    if (to + Max(length, 1) > last) break;
    if (length > 0 && !is_control(*from))
      memcpy(to, from, static_cast<Size>(length));
    else
      *to = '?';
    to += Max(length, 1);
    from += Max(length, 1);
  }
  *to = '\0';
}

bool is_ascii(const char* text) {
  for (; *text != '\0'; ++text)
    if (IS_HIGHBIT_SET(*text)) return false;
  return true;
}

// Can the text be converted for the client? Otherwise the message would be an error.
bool is_convertible(const char* text) {
  const int client = pg_get_client_encoding(), here = GetDatabaseEncoding();
  if (client == here || client == PG_SQL_ASCII || here == PG_SQL_ASCII || is_ascii(text))
    return true;
  const Oid conversion = FindDefaultConversionProc(here, client);
  if (!OidIsValid(conversion)) return false;
  const auto length = static_cast<int>(strlen(text));
  const int room = length * MAX_CONVERSION_GROWTH + 1;
  auto* result = allocate<unsigned char>(room);
  const int converted = pg_do_encoding_conversion_buf(
      conversion, here, client, reinterpret_cast<unsigned char*>(const_cast<char*>(text)), length,
      result, room, true);
  pfree(result);
  return converted == length;
}

// Replaces characters that the client's encoding lacks by question marks.
void fit_to_client(char* text) {
  if (is_convertible(text)) return;
  const int encoding = GetDatabaseEncoding();
  char* to = text;
  for (const char* from = text; *from != '\0';) {
    const int length = pg_encoding_mblen(encoding, from);
    *to++ = IS_HIGHBIT_SET(*from) ? '?' : *from;
    from += length;
  }
  *to = '\0';
}

// DETAIL: the transaction has committed here, but not there, and why.
int detail_of(const Kept& message) {
  return errdetail("The transaction has committed here, at %s, but not there: %s",
                   timestamptz_to_str(message.time),
                   message.reason[0] != '\0' ? message.reason : "it was rolled back.");
}

void say(const Kept& message) {
  switch (message.message) {
    case Message::server_unreachable:
      ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
              errmsg("server \"%s\" is lost: keys are judged without its slices", message.server),
              message.reason[0] != '\0'
                  ? errdetail_internal("%s", message.reason)
                  : errdetail("Another session could not reach it a moment ago."),
              strcmp(message.reason, kIsStandby) == 0
                  ? errhint("Type: ALTER SERVER %s OPTIONS (ADD target_session_attrs "
                            "'read-write'), so that its other hosts are tried.",
                            quote_identifier(message.server))
                  : 0);
      break;
    case Message::keys_not_remembered:
      ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
              errmsg("server \"%s\" does not remember the keys of a transaction of this session",
                     message.server),
              detail_of(message), errhint("The same keys count as new when they come again."));
      break;
    case Message::keys_not_deleted:
      ereport(
          WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg("server \"%s\" still has the keys that a transaction of this session has deleted",
                 message.server),
          detail_of(message),
          errhint("They count as repeats until DELETE or TRUNCATE is repeated. Keys that the "
                  "transaction has added there count as new when they come again."));
      break;
    case Message::not_altered:
      ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
              errmsg("server \"%s\" has not altered a filter that a transaction of this session "
                     "has altered",
                     message.server),
              detail_of(message),
              errhint("Repeat the ALTER here. After a DROP or RENAME, type the same there, for the "
                      "filter of the former name."));
      break;
  }
}

}  // namespace

void defer_message(Message message, const char* server, const char* reason) {
  has_deferred_messages = true;
  if (count == kMaxKept) {
    ++dropped;
    return;
  }
  Kept& place = kept[count++];
  place.message = message;
  place.time = GetCurrentTimestamp();
  copy_text(place.server, sizeof place.server, server);
  copy_text(place.reason, sizeof place.reason, reason);
}

void say_deferred_messages() {
  // A failed transaction cannot look up a conversion.
  if (NoRaise::is_marked() || !IsTransactionState()) return;
  while (count > 0) {
    Kept message = kept[0];
    memmove(kept, kept + 1, sizeof(Kept) * static_cast<Size>(--count));
    fit_to_client(message.server);
    fit_to_client(message.reason);
    say(message);
  }
  has_deferred_messages = false;
  if (dropped == 0) return;
  const int more = dropped;
  dropped = 0;
  ereport(WARNING, errcode(ERRCODE_CONNECTION_FAILURE),
          errmsg_plural("%d more warning of a server that was lost",
                        "%d more warnings of servers that were lost", more, more));
}

}  // namespace streamfilter::pg
