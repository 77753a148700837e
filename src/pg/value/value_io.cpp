// The type streamfilter from and to text and bytes.
//
// Text:   kind(option=value, …)           an empty filter
//         kind(option=value, …):1:body    a filled one: the version of the format, and base64 of
//                                         everything behind the header and 8 bytes of checksum
// Binary: the block with 0 in the host's word, then 8 bytes of checksum
#include "pg/server/postgres.hpp"

#include "pg/value/value.hpp"

extern "C" {
#include "common/base64.h"
#include "libpq/pqformat.h"
}

#include "pg/server/problem_report.hpp"

namespace streamfilter::pg {
namespace {

constexpr Size kChecksumBytes = sizeof(uint64);
constexpr Size kChunk = 3 << 20;  // coded between two looks for an interrupt

// What is wrong with a value is invalid_text_representation or invalid_binary_representation; what
// is wrong with the filter it describes keeps its own SQLSTATE.
int value_report(const Problem& problem, int malformed) {
  problem_report(problem);
  switch (problem.error) {
    case Error::corrupt:
      if (problem.hint[0] == '\0')
        errhint("Use the value exactly as it was output, from its first to its last byte.");
      [[fallthrough]];
    case Error::syntax:
    case Error::unknown_name:
    case Error::newer_version: return errcode(malformed);
    default: return 0;
  }
}

// PostgreSQL 18 has made the bytes of these functions unsigned.
template <typename Byte>
int encode(int (*function)(const Byte*, int, char*, int), const unsigned char* bytes, int count,
           char* text, int size) {
  return function(reinterpret_cast<const Byte*>(bytes), count, text, size);
}
template <typename Byte>
int decode(int (*function)(const char*, int, Byte*, int), const char* text, int count,
           unsigned char* bytes, int size) {
  return function(text, count, reinterpret_cast<Byte*>(bytes), size);
}

// The body as base64: first as many bytes as make whole groups of four characters, in place; then
// the few that are left, together with the checksum.
struct BodyText {
  Size whole, rest;  // bytes of the two parts

  explicit BodyText(Size memory)
      : whole((memory - sizeof(Header)) / 3 * 3), rest(memory - sizeof(Header) - whole) {}

  static Size characters(Size bytes) { return (bytes + 2) / 3 * 4; }
  Size length() const { return characters(whole) + characters(rest + kChecksumBytes); }
};

unsigned char* body_of(Header* header) { return reinterpret_cast<unsigned char*>(header + 1); }
const unsigned char* body_of(const Header* header) {
  return reinterpret_cast<const unsigned char*>(header + 1);
}

void write_body(const Header* header, char* text) {
  const BodyText form(header->parameters.memory);
  const unsigned char* body = body_of(header);
  for (Size done = 0; done < form.whole; done += kChunk) {
    CHECK_FOR_INTERRUPTS();
    const Size count = Min(kChunk, form.whole - done);
    const Size size = BodyText::characters(count);
    encode(pg_b64_encode, body + done, count, text, size);
    text += size;
  }
  unsigned char rest[2 + kChecksumBytes];
  const uint64 sum = checksum(header);
  memcpy(rest, body + form.whole, form.rest);
  memcpy(rest + form.rest, &sum, sizeof sum);
  const Size count = form.rest + kChecksumBytes;
  encode(pg_b64_encode, rest, count, text, BodyText::characters(count));
}

bool bad_body(Problem& problem) {
  return problem.set(Error::corrupt, "damaged streamfilter: the body is not base64");
}

// Reads a body into a block whose header is there.
bool read_body(Header* header, const char* text, Problem& problem) {
  const BodyText form(header->parameters.memory);
  unsigned char* body = body_of(header);
  for (Size done = 0; done < form.whole; done += kChunk) {
    CHECK_FOR_INTERRUPTS();
    const Size count = Min(kChunk, form.whole - done);
    const Size size = BodyText::characters(count);
    if (decode(pg_b64_decode, text, size, body + done, count) != static_cast<int>(count))
      return bad_body(problem);
    text += size;
  }
  unsigned char rest[2 + kChecksumBytes];
  const Size count = form.rest + kChecksumBytes;
  if (decode(pg_b64_decode, text, BodyText::characters(count), rest, sizeof rest) !=
      static_cast<int>(count))
    return bad_body(problem);
  memcpy(body + form.whole, rest, form.rest);
  uint64 sum;
  memcpy(&sum, rest + form.rest, sizeof sum);
  if (sum != checksum(header))
    return problem.set(Error::corrupt, "damaged streamfilter: wrong checksum");
  return check(header, header->parameters.memory, problem);
}

bool check_length(Size length, Size expected, const char* unit, Problem& problem) {
  if (length == expected) return true;
  problem.set(Error::corrupt, "%s streamfilter", length < expected ? "truncated" : "damaged");
  return problem.add_detail("The value has %zu %s instead of %zu.", length, unit, expected);
}

bool bad_syntax(Problem& problem, const char* detail, const char* at) {
  problem.set(Error::syntax, "invalid input syntax for type streamfilter");
  return problem.add_detail("%s at \"%s\".", detail, Excerpt(at, strlen(at), 30).text());
}

// Reads ":version:" in front of a body.
bool read_version(const char*& at, Problem& problem) {
  if (*at != ':') return bad_syntax(problem, "Junk after the closing parenthesis", at);
  Header header{};
  header.magic = kMagic;
  const char* stop = at + 1;
  for (; *stop >= '0' && *stop <= '9' && header.version < 1000; ++stop)
    header.version = header.version * 10 + (*stop - '0');
  if (stop == at + 1 || *stop != ':')
    return bad_syntax(problem, "Expected \":\", the version of the format and \":\"", at);
  at = stop + 1;
  return header.version == kFormatVersion || check_header(header, problem);
}

// The length of text without the blanks at its end.
Size trimmed_length(const char* text) {
  Size length = strlen(text);
  while (length > 0 && strchr(" \t\n\r", text[length - 1]) != nullptr) --length;
  return length;
}

// nullptr: the problem says why not. Nothing is allocated before the size is known to be sane.
Header* read_text(const char* text, Problem& problem) {
  const Size length = trimmed_length(text);
  Definition definition;
  Size used;
  if (!parse_definition(text, length, definition, used, problem) ||
      !complete(definition, problem) || !fits_value(definition.parameters, problem))
    return nullptr;
  if (used == length) return make_value(definition.parameters, CurrentMemoryContext);
  const char* body = text + used;
  if (!read_version(body, problem)) return nullptr;
  const Size memory = definition.parameters.memory;
  if (!check_length(text + length - body, BodyText(memory).length(), "characters of body", problem))
    return nullptr;
  Header* header = static_cast<Header*>(palloc(memory));
  format_header(header, definition.parameters);
  SET_VARSIZE(header, memory);
  if (read_body(header, body, problem)) return header;
  pfree(header);
  return nullptr;
}

// Does the definition alone give the filter back?
bool is_pristine(const Header* header) {
  if (!is_empty(header)) return false;
  Header* fresh = make_value(header->parameters, CurrentMemoryContext);
  const bool same =
      memcmp(body_of(fresh), body_of(header), header->parameters.memory - sizeof(Header)) == 0;
  pfree(fresh);
  return same;
}

// nullptr: the problem says why not.
Header* read_bytes(const char* bytes, Size length, Problem& problem) {
  if (length < sizeof(Header) + kChecksumBytes) {
    problem.set(Error::corrupt, "truncated streamfilter");
    problem.add_detail("The value has only %zu bytes.", length);
    return nullptr;
  }
  Header start;
  memcpy(static_cast<void*>(&start), bytes, sizeof start);
  if (!check_header(start, problem)) return nullptr;
  const Size memory = start.parameters.memory;
  if (!check_length(length, memory + kChecksumBytes, "bytes", problem) ||
      !fits_value(start.parameters, problem))
    return nullptr;
  Header* header = static_cast<Header*>(palloc(memory));
  memcpy(static_cast<void*>(header), bytes, memory);
  uint64 sum;
  memcpy(&sum, bytes + memory, sizeof sum);
  if (start.host != 0)
    problem.set(Error::corrupt, "damaged streamfilter: invalid header");
  else if (sum != checksum(header))
    problem.set(Error::corrupt, "damaged streamfilter: wrong checksum");
  else if (check(header, memory, problem)) {
    SET_VARSIZE(header, memory);
    return header;
  }
  pfree(header);
  return nullptr;
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter;
using namespace streamfilter::pg;

SF_FUNCTION(streamfilter_in) {
  Problem problem;
  Header* header = read_text(PG_GETARG_CSTRING(0), problem);
  if (header == nullptr)
    SF_INPUT_ERROR(fcinfo, static_cast<Datum>(0),
                   value_report(problem, ERRCODE_INVALID_TEXT_REPRESENTATION));
  PG_RETURN_POINTER(header);
}

SF_FUNCTION(streamfilter_out) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  char start[kMaxDefinitionText + 16];
  Size length = print_definition(header->parameters, start, kMaxDefinitionText);
  if (is_pristine(header)) PG_RETURN_CSTRING(pstrdup(start));

  length += snprintf(start + length, sizeof start - length, ":%u:", kFormatVersion);
  const Size size = length + BodyText(header->parameters.memory).length() + 1;
  if (size > MaxAllocSize)
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("streamfilter value is too large for its text form"),
                    errdetail("The text would have %zu characters; 1 GB is the limit.", size),
                    errhint("Use its binary form, for example COPY ... (FORMAT binary).")));
  char* result = static_cast<char*>(palloc(size));
  memcpy(result, start, length);
  write_body(header, result + length);
  result[size - 1] = '\0';
  PG_RETURN_CSTRING(result);
}

SF_FUNCTION(streamfilter_recv) {
  StringInfo message = reinterpret_cast<StringInfo>(PG_GETARG_POINTER(0));
  const Size length = message->len - message->cursor;
  Problem problem;
  Header* header = read_bytes(pq_getmsgbytes(message, length), length, problem);
  if (header == nullptr)
    ereport(ERROR, value_report(problem, ERRCODE_INVALID_BINARY_REPRESENTATION));
  PG_RETURN_POINTER(header);
}

SF_FUNCTION(streamfilter_send) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  const uint32 host = 0;
  const uint64 sum = checksum(header);
  StringInfoData message;
  pq_begintypsend(&message);
  enlargeStringInfo(&message, header->parameters.memory + sizeof sum);
  appendBinaryStringInfo(&message, reinterpret_cast<const char*>(&host), sizeof host);
  appendBinaryStringInfo(&message, reinterpret_cast<const char*>(header) + sizeof host,
                         header->parameters.memory - sizeof host);
  appendBinaryStringInfo(&message, reinterpret_cast<const char*>(&sum), sizeof sum);
  PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}
