// The type streamfilter from and to text and bytes: core/filter/value_form.hpp.
#include "pg/server/postgres.hpp"

#include "pg/value/compact_value.hpp"
#include "pg/value/value.hpp"

extern "C" {
#include "libpq/pqformat.h"
}

#include "core/filter/value_form.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

// Problems of a value are invalid_text_representation or invalid_binary_representation; problems of
// the filter it describes keep their SQLSTATE.
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

// Values that a dump restores or a subscription copies were accepted before, perhaps by another
// version.
Reading reading_of_input() { return is_restoring() ? Reading::restored : Reading::request; }

// nullptr: the problem says why. Allocates nothing before the size is known to be plausible.
Header* read_text(const char* text, Problem& problem) {
  TextStart start;
  if (!read_text_start(text, strlen(text), reading_of_input(), start, problem)) return nullptr;
  const Parameters& parameters = start.definition.parameters;
  if (!fits_value(parameters, problem)) return nullptr;
  if (start.body == nullptr) return make_value(parameters, CurrentMemoryContext);
  Header* header = static_cast<Header*>(palloc(block_bytes(parameters)));
  format_header(header, parameters);
  BodyReader reader(header, start.body);
  while (reader.step()) CHECK_FOR_INTERRUPTS();
  if (reader.finish(problem)) return header;
  pfree(header);
  return nullptr;
}

// Does the definition alone give the filter back?
bool is_pristine(const Header* header) {
  const Parameters& parameters = header->parameters;
  void* scratch = palloc(parameters.slice_bytes);
  bool result = true;
  for (uint32 i = 0; i < parameters.slices && result; ++i) {
    CHECK_FOR_INTERRUPTS();
    result = is_pristine(header, i, scratch);
  }
  pfree(scratch);
  return result;
}

// nullptr: the problem says why.
Header* read_bytes(const char* bytes, Size length, Problem& problem) {
  Parameters parameters;
  Size used;
  if (!read_binary_header(bytes, length, parameters, used, problem) ||
      !fits_value(parameters, problem))
    return nullptr;
  // Too few bytes claim no more memory than there are bytes.
  auto* header =
      static_cast<Header*>(palloc(Min(block_bytes(parameters), sizeof(Header) + length)));
  if (read_binary(bytes, length, header, problem)) return header;
  pfree(header);
  return nullptr;
}

}  // namespace

SF_FUNCTION(streamfilter_in) {
  Problem problem;
  Header* header = read_text(PG_GETARG_CSTRING(0), problem);
  if (header == nullptr)
    SF_INPUT_ERROR(fcinfo, static_cast<Datum>(0),
                   value_report(problem, ERRCODE_INVALID_TEXT_REPRESENTATION));
  PG_RETURN_DATUM(value_datum(header));
}

SF_FUNCTION(streamfilter_out) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  const bool is_filled = !is_pristine(header);
  char start[kMaxTextStart];
  const Size length = write_text_start(header, is_filled, start, sizeof start);
  if (!is_filled) PG_RETURN_CSTRING(pstrdup(start));

  const Size size = length + BodyText(header->parameters).length() + 1;
  if (size > MaxAllocSize)
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("streamfilter value is too large for its text form"),
                    errdetail("The text would have %zu characters; 1 GB is the limit.", size),
                    errhint("Use its binary form, for example COPY ... (FORMAT binary).")));
  char* result = allocate<char>(size);
  memcpy(result, start, length);
  BodyWriter writer(header, result + length);
  while (writer.step()) CHECK_FOR_INTERRUPTS();
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
  PG_RETURN_DATUM(value_datum(header));
}

SF_FUNCTION(streamfilter_send) {
  const Header* header = get_value(PG_GETARG_DATUM(0));
  const Size size = binary_size(header->parameters);
  auto* bytes = static_cast<bytea*>(palloc(VARHDRSZ + size));
  SET_VARSIZE(bytes, VARHDRSZ + size);
  write_binary(header, VARDATA(bytes));
  PG_RETURN_BYTEA_P(bytes);
}

}  // namespace streamfilter::pg
