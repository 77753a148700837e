#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/executor.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/rel.h"
}

#include "pg/ingest/plain_lines.hpp"

namespace streamfilter::pg {
namespace {

char* find(char* from, const char* end, char wanted) {
  return static_cast<char*>(memchr(from, wanted, static_cast<size_t>(end - from)));
}

bool contains(char* from, const char* end, char wanted) {
  return find(from, end, wanted) != nullptr;
}

bool is_null(const CopyFromStateData* copy, const char* value, const char* end) {
  const auto length = static_cast<size_t>(end - value);
  return length == static_cast<size_t>(copy->opts.null_print_len) &&
         memcmp(value, copy->opts.null_print, length) == 0;
}

// Is the value \N, if that means NULL? A period behind it makes it the end mark.
bool begins_null(const CopyFromStateData* copy, const char* line, const char* at, const char* end) {
  const char delimiter = copy->opts.delim[0];
  return (at == line || at[-1] == delimiter) && end - at >= 2 && at[1] != '.' &&
         is_null(copy, at, at + 2) && (at + 2 == end || at[2] == delimiter);
}

bool has_escapes(const CopyFromStateData* copy, char* line, const char* end) {
  for (char* at = find(line, end, '\\'); at != nullptr; at = find(at + 1, end, '\\'))
    if (!begins_null(copy, line, at, end)) return true;
  return false;
}

bool is_plain(const CopyFromStateData* copy, char* line, const char* end) {
  if (contains(line, end, '\r')) return false;
  // In CSV a backslash may begin the end mark.
  return SF_COPY_IS_CSV(copy) ? *line != '\\' && !contains(line, end, copy->opts.quote[0])
                              : !has_escapes(copy, line, end);
}

// Finds the starts of values. False: their number is wrong.
bool find_values(CopyFromState copy, char* line, const char* end) {
  const int last = list_length(copy->attnumlist) - 1;
  for (int i = 0; i < last; ++i) {
    copy->raw_fields[i] = line;
    char* delimiter = find(line, end, copy->opts.delim[0]);
    if (delimiter == nullptr) return false;
    line = delimiter + 1;
  }
  copy->raw_fields[last] = line;
  return !contains(line, end, copy->opts.delim[0]);
}

// From here on errors concern this line.
void begin_line(CopyFromState copy, const char* line, const char* end) {
  ++copy->cur_lineno;
  copy->line_buf_valid = false;
  resetStringInfo(&copy->line_buf);
  appendBinaryStringInfo(&copy->line_buf, line, static_cast<int>(end - line));
  copy->line_buf_valid = true;
  copy->input_buf_index = static_cast<int>(end - copy->input_buf) + 1;
}

// Overwrites delimiters in the buffer by string terminators.
void convert_values(CopyFromState copy, char* end, Datum* values, bool* nulls) {
  TupleDesc type = RelationGetDescr(copy->rel);
  const int count = list_length(copy->attnumlist);
  for (int i = 0; i < count; ++i) {
    const int column = list_nth_int(copy->attnumlist, i) - 1;
    const FormData_pg_attribute* attribute = TupleDescAttr(type, column);
    char* value = copy->raw_fields[i];
    char* end_of_value = i + 1 < count ? copy->raw_fields[i + 1] - 1 : end;
    *end_of_value = '\0';
    if (is_null(copy, value, end_of_value)) value = nullptr;
    copy->cur_attname = NameStr(attribute->attname);
    copy->cur_attval = value;
    values[column] = InputFunctionCall(&copy->in_functions[column], value,
                                       copy->typioparams[column], attribute->atttypmod);
    nulls[column] = value == nullptr;
    copy->cur_attname = nullptr;
    copy->cur_attval = nullptr;
  }
}

void add_defaults(const CopyFromStateData* copy, ExprContext* context, Datum* values, bool* nulls) {
  for (int i = 0; i < copy->num_defaults; ++i) {
    const int column = copy->defmap[i];
    values[column] = ExecEvalExpr(SF_COPY_DEFAULT(copy, i), context, &nulls[column]);
  }
}

}  // namespace

bool has_plain_lines(const CopyFromStateData* copy) {
  if (!SF_COPY_IS_TEXT(copy) && !SF_COPY_IS_CSV(copy)) return false;
  if (copy->attnumlist == NIL || copy->convert_select_flags != nullptr || SF_COPY_HAS_MARK(copy))
    return false;
  for (int i = 0; SF_COPY_IS_CSV(copy) && i < RelationGetDescr(copy->rel)->natts; ++i)
    if (copy->opts.force_notnull_flags[i] || copy->opts.force_null_flags[i]) return false;
  return true;
}

bool read_plain_line(CopyFromState copy, ExprContext* context, Datum* values, bool* nulls) {
  if (copy->eol_type != EOL_NL || INPUT_BUF_BYTES(copy) <= 0) return false;
  char* line = copy->input_buf + copy->input_buf_index;
  char* end = find(line, copy->input_buf + copy->input_buf_len, '\n');
  if (end == nullptr || !is_plain(copy, line, end) || !find_values(copy, line, end)) return false;
  memset(nulls, true, static_cast<size_t>(RelationGetDescr(copy->rel)->natts) * sizeof(bool));
  begin_line(copy, line, end);
  convert_values(copy, end, values, nulls);
  add_defaults(copy, context, values, nulls);
  return true;
}

}  // namespace streamfilter::pg
