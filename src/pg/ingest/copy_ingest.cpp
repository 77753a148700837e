// COPY inserts row by row if a table has a BEFORE ROW trigger. When COPY calls our trigger for its
// first row, it has checked rights, opened its source and fired statement triggers, so all of its
// semantics are in force. From then on this file replaces COPY's source: when COPY asks for more
// bytes, we read the remaining rows from the true source, insert them in batches, and answer that
// there are no more. COPY then does its final work. If the trigger itself inserted the rows,
// pg_trigger_depth() would show it.
#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/progress.h"
#include "executor/execPartition.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
}

#include "pg/catalog/volatile_code.hpp"
#include "pg/handle/client_pauses.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/ingest/copy_ingest.hpp"
#include "pg/ingest/ingest.hpp"
#include "pg/ingest/target_rule.hpp"
#include "pg/server/compat_private.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
namespace {

// ---- plain lines --------------------------------------------------------------------------------

// Lines of COPY with only values and delimiters: no escapes, quotes or carriage returns. COPY looks
// at each of their characters twice; memchr() finds the few that matter. All other lines, and all
// errors, are left to COPY.

char* find(char* from, const char* end, char wanted) {
  return static_cast<char*>(memchr(from, wanted, static_cast<size_t>(end - from)));
}

bool contains(char* from, const char* end, char wanted) {
  return find(from, end, wanted) != nullptr;
}

bool is_null(const CopyFromStateData* copy, const char* value, const char* end) {
  return end - value == copy->opts.null_print_len &&
         memcmp(value, copy->opts.null_print, static_cast<size_t>(end - value)) == 0;
}

// Is the value \N, if that means NULL? A period behind it makes it the end mark.
bool begins_null(const CopyFromStateData* copy, const char* line, const char* at, const char* end) {
  const char delimiter = copy->opts.delim[0];
  return (at == line || at[-1] == delimiter) && end - at >= 2 && at[1] != '.' &&
         is_null(copy, at, at + 2) && (at + 2 == end || at[2] == delimiter);
}

bool is_plain(const CopyFromStateData* copy, char* line, const char* end) {
  if (contains(line, end, '\r')) return false;
  // In CSV a backslash may begin the end mark.
  if (SF_COPY_IS_CSV(copy)) return *line != '\\' && !contains(line, end, copy->opts.quote[0]);
  for (char* at = find(line, end, '\\'); at != nullptr; at = find(at + 1, end, '\\'))
    if (!begins_null(copy, line, at, end)) return false;
  return true;
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

// Overwrites delimiters in the buffer by string terminators. Columns that are not given get their
// defaults.
void convert_values(CopyFromState copy, char* end, ExprContext* context, Datum* values,
                    bool* nulls) {
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
  for (int i = 0; i < copy->num_defaults; ++i) {
    const int column = copy->defmap[i];
    values[column] = ExecEvalExpr(SF_COPY_DEFAULT(copy, i), context, &nulls[column]);
  }
}

// Can the format, with these options, have such lines?
bool has_plain_lines(const CopyFromStateData* copy) {
  if (!SF_COPY_IS_TEXT(copy) && !SF_COPY_IS_CSV(copy)) return false;
  if (copy->attnumlist == NIL || copy->convert_select_flags != nullptr || SF_COPY_HAS_MARK(copy))
    return false;
  for (int i = 0; SF_COPY_IS_CSV(copy) && i < RelationGetDescr(copy->rel)->natts; ++i)
    if (copy->opts.force_notnull_flags[i] || copy->opts.force_null_flags[i]) return false;
  return true;
}

// Like NextCopyFrom(), for formats with plain lines. False: the next line is not plain, or not
// completely in the buffer, or there is none; then nothing was read.
bool read_plain_line(CopyFromState copy, ExprContext* context, Datum* values, bool* nulls) {
  if (copy->eol_type != EOL_NL || INPUT_BUF_BYTES(copy) <= 0) return false;
  char* line = copy->input_buf + copy->input_buf_index;
  char* end = find(line, copy->input_buf + copy->input_buf_len, '\n');
  if (end == nullptr || !is_plain(copy, line, end) || !find_values(copy, line, end)) return false;
  memset(nulls, true, static_cast<size_t>(RelationGetDescr(copy->rel)->natts) * sizeof(bool));
  // From here on errors concern this line.
  ++copy->cur_lineno;
  copy->line_buf_valid = false;
  resetStringInfo(&copy->line_buf);
  appendBinaryStringInfo(&copy->line_buf, line, static_cast<int>(end - line));
  copy->line_buf_valid = true;
  copy->input_buf_index = static_cast<int>(end - copy->input_buf) + 1;
  convert_values(copy, end, context, values, nulls);
  return true;
}

// ---- where COPY reads --------------------------------------------------------------------------

// The source, and the position in its buffers.
struct Position {
  CopySource source;
  copy_data_source_cb callback;
  int input_index, input_length;
  bool input_eof, input_error;
  int raw_index, raw_length;
  bool raw_eof;
};

Position position_of(const CopyFromStateData* copy) {
  return {copy->copy_src,      copy->data_source_cb,    copy->input_buf_index,
          copy->input_buf_len, copy->input_reached_eof, copy->input_reached_error,
          copy->raw_buf_index, copy->raw_buf_len,       copy->raw_reached_eof};
}

void set_position(CopyFromState copy, const Position& position) {
  copy->copy_src = position.source;
  copy->data_source_cb = position.callback;
  copy->input_buf_index = position.input_index;
  copy->input_buf_len = position.input_length;
  copy->input_reached_eof = position.input_eof;
  copy->input_reached_error = position.input_error;
  copy->raw_buf_index = position.raw_index;
  copy->raw_buf_len = position.raw_length;
  copy->raw_reached_eof = position.raw_eof;
}

// ---- lines -------------------------------------------------------------------------------------

// For errors about a row that was read earlier: as much of its line as an error shows.
struct Line {
  uint64 row;
  uint64 number;
  int length;  // -1: binary
  char text[108];
};
constexpr uint64 kRead = 2 * kMaxUnjudgedRows;

// A COPY whose rows after the first are inserted here.
struct CopyRows {
  CopyFromState copy;
  bool has_plain_lines;
  bool of_client;  // in plain lines
  Position position;
  EState* estate;
  ModifyTableState* node;
  Ingest* ingest;
  ExprContext* values;
  uint64 rows;  // rows so far
  Line* read;   // the last kRead lines
  Line* kept;   // those of rows waiting to be written, in order
  int kept_count;
  uint64 at;        // number of the row that an error would concern; 0: the row being read
  bool looks_back;  // COPY has been told another row's line. The line being read:
  uint64 number;
  bool has_text;
  StringInfoData text;
};

void remember_line(CopyRows* rows) {
  const CopyFromStateData* copy = rows->copy;
  Line* line = &rows->read[rows->rows % kRead];
  line->row = rows->rows;
  line->number = copy->cur_lineno;
  line->length = -1;
  if (!copy->line_buf_valid) return;
  line->length = Min(copy->line_buf.len, static_cast<int>(sizeof(line->text)) - 1);
  memcpy(line->text, copy->line_buf.data, static_cast<size_t>(line->length));
  line->text[line->length] = '\0';
}

void look_forward(CopyRows* rows) {
  if (!rows->looks_back) return;
  rows->looks_back = false;
  rows->copy->cur_lineno = rows->number;
  rows->copy->line_buf_valid = rows->has_text;
  rows->copy->line_buf = rows->text;
}

const Line* find_line(const CopyRows* rows, uint64 row) {
  const Line* read = &rows->read[row % kRead];
  if (read->row == row) return read;
  const Line* end = rows->kept + rows->kept_count;
  const Line* kept =
      std::lower_bound(static_cast<const Line*>(rows->kept), end, row,
                       [](const Line& line, uint64 wanted) { return line.row < wanted; });
  return kept != end && kept->row == row ? kept : nullptr;
}

void look_back(CopyRows* rows) {
  CopyFromState copy = rows->copy;
  if (!rows->looks_back) {
    rows->looks_back = true;
    rows->number = copy->cur_lineno;
    rows->has_text = copy->line_buf_valid;
    rows->text = copy->line_buf;
  }
  const Line* line = find_line(rows, rows->at);
  copy->line_buf_valid = line != nullptr && line->length >= 0;
  if (line == nullptr) return;
  copy->cur_lineno = line->number;
  copy->line_buf.data = const_cast<char*>(line->text);
  copy->line_buf.len = Max(line->length, 0);
}

// A message is about to be written, and COPY will add the line that it is about.
void tell_line(void* arg) {
  auto* rows = static_cast<CopyRows*>(arg);
  if (rows->at == 0) return look_forward(rows);
  if (const uint64 waits = row_that_waits(rows->ingest)) rows->at = waits;
  look_back(rows);
}

void keep_line(void* context, int place, uint64 row) {
  auto* rows = static_cast<CopyRows*>(context);
  rows->kept[place] = rows->read[row % kRead];
  rows->kept_count = place + 1;
}

// ---- what rows are inserted with ---------------------------------------------------------------

// As CopyFrom() does.
void open_target(CopyRows* rows) {
  CopyFromState copy = rows->copy;
  EState* estate = CreateExecutorState();
  const InContext context(estate->es_query_cxt);
  SF_INIT_COPY_RANGE_TABLE(estate, copy);
  estate->es_output_cid = command_of_copy();
  ResultRelInfo* target = makeNode(ResultRelInfo);
  ExecInitResultRelation(estate, target, 1);
  ExecOpenIndices(target, false);
  ModifyTableState* node = makeNode(ModifyTableState);
  node->ps.state = estate;
  node->operation = CMD_INSERT;
  node->mt_nrels = 1;
  node->resultRelInfo = node->rootResultRelInfo = target;
  node->mt_transition_capture = copy->transition_capture;
  if (copy->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
    node->mt_partition_tuple_routing = ExecSetupPartitionTupleRouting(estate, copy->rel);
  rows->estate = estate;
  rows->node = node;
}

void close_target(CopyRows* rows) {
  if (rows->node->mt_partition_tuple_routing != nullptr)
    ExecCleanupTupleRouting(rows->node, rows->node->mt_partition_tuple_routing);
  ExecResetTupleTable(rows->estate->es_tupleTable, false);
  ExecCloseResultRelations(rows->estate);
  ExecCloseRangeTableRelations(rows->estate);
  FreeExecutorState(rows->estate);
}

int insert_options(const CopyFromStateData* copy) {
  const RelationData* table = copy->rel;
  int options = copy->opts.freeze ? TABLE_INSERT_FROZEN : 0;
  if (RELKIND_HAS_STORAGE(table->rd_rel->relkind) && SF_HAS_NEW_FILE(table))
    options |= TABLE_INSERT_SKIP_FSM;
  return options;
}

// ---- rows --------------------------------------------------------------------------------------

int64 progress(int parameter) {
  return MyBEEntry == nullptr ? 0 : MyBEEntry->st_progress_param[parameter];
}

bool has_next_line(const CopyFromStateData* copy) {
  const auto left = static_cast<size_t>(copy->input_buf_len - copy->input_buf_index);
  return copy->raw_reached_eof ||
         memchr(copy->input_buf + copy->input_buf_index, '\n', left) != nullptr;
}

// The next row of the source that satisfies WHERE; false: there is none.
bool read_next_row(CopyRows* rows, TupleTableSlot* row, int64* excluded) {
  CopyFromState copy = rows->copy;
  ExprContext* context = rows->values;
  if (unlikely(rows->looks_back)) look_forward(rows);
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    ExecClearTuple(row);
    MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
    bool found =
        rows->has_plain_lines && read_plain_line(copy, context, row->tts_values, row->tts_isnull);
    if (!found) {
      if (rows->of_client && has_exclusive_filters() && !has_next_line(copy))
        hand_over_if_client_pauses();
      found = NextCopyFrom(copy, context, row->tts_values, row->tts_isnull);
    }
    MemoryContextSwitchTo(rows->estate->es_query_cxt);
    if (!found) return false;
    ExecStoreVirtualTuple(row);
    row->tts_tableOid = RelationGetRelid(copy->rel);
    context->ecxt_scantuple = row;
    if (copy->qualexpr == nullptr || ExecQual(copy->qualexpr, context)) return true;
    pgstat_progress_update_param(PROGRESS_COPY_TUPLES_EXCLUDED, ++*excluded);
    free_values(rows->ingest);
  }
}

void show_inserted(int64 before, uint64 rows) {
  pgstat_progress_update_param(PROGRESS_COPY_TUPLES_PROCESSED, before + static_cast<int64>(rows));
}

uint64 insert_rows(CopyRows* rows) {
  int64 excluded = progress(PROGRESS_COPY_TUPLES_EXCLUDED);
  const int64 before = progress(PROGRESS_COPY_TUPLES_PROCESSED);
  const IngestCounts* counts = counts_of(rows->ingest);
  uint64 shown = 0;
  rows->values = keep_values(rows->ingest);
  for (;;) {
    TupleTableSlot* row = row_to_fill(rows->ingest);
    if (!read_next_row(rows, row, &excluded)) break;
    ++rows->rows;
    remember_line(rows);
    ingest_row(rows->ingest, row, rows->rows);
    if (counts->inserted == shown) continue;
    shown = counts->inserted;
    show_inserted(before, shown);
  }
  const uint64 inserted = finish_ingest(rows->ingest).inserted;
  show_inserted(before, inserted);
  return inserted;
}

void copy_the_rest(CopyRows* rows) {
  MemoryContext caller = MemoryContextSwitchTo(rows->estate->es_query_cxt);
  rows->read = static_cast<Line*>(palloc0(sizeof(Line) * kRead));
  rows->kept = static_cast<Line*>(palloc(sizeof(Line) * kMaxWaitingRows));
  rows->ingest = begin_ingest(rows->node, {insert_options(rows->copy), true, false, false},
                              {&rows->at, keep_line, rows}, false);
  ErrorContextCallback context = {error_context_stack, tell_line, rows};
  error_context_stack = &context;
  count_copied(insert_rows(rows));
  look_forward(rows);
  error_context_stack = context.previous;
  MemoryContextSwitchTo(caller);
  close_target(rows);
}

// ---- taking over -------------------------------------------------------------------------------

// A program that goes on writing after the end mark may fail, as when COPY itself stops reading
// early. COPY will not know that, so the program is closed here.
void close_program(CopyFromState copy) {
  if (!copy->is_program || copy->raw_reached_eof) return;
  ErrorContextCallback* context = error_context_stack;
  error_context_stack = context->previous;  // it concerns no line
  const int result = ClosePipeStream(copy->copy_file);
  if (result == -1)
    ereport(ERROR, errcode_for_file_access(),
            errmsg("could not close pipe to external command: %m"));
  if (result != 0 && !wait_result_is_signal(result, SIGPIPE))
    ereport(ERROR, errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
            errmsg("program \"%s\" failed", copy->filename),
            errdetail_internal("%s", wait_result_to_str(result)));
  error_context_stack = context;
  copy->is_program = false;
  copy->filename = nullptr;
  copy->copy_file = nullptr;
}

// Called when COPY asks for more bytes: reads all that is left by itself, and tells COPY that there
// is none.
int ingest_the_rest(void*, int, int) {
  auto* rows = static_cast<CopyRows*>(*kept_for_copy());
  CopyFromState copy = rows->copy;
  set_position(copy, rows->position);
  --copy->cur_lineno;  // COPY has counted the line that it expects
  copy_the_rest(rows);
  close_program(copy);
  set_position(copy, {copy->copy_src, copy->data_source_cb, 0, 0, false, false, 0, 0, false});
  return 0;
}

bool hides_volatile_defaults(const CopyFromStateData* copy) {
  for (int i = 0; i < copy->num_defaults; ++i)
    if (hides_volatile_code(reinterpret_cast<Node*>(SF_COPY_DEFAULT(copy, i)->expr))) return true;
  return false;
}

bool reads_ahead(const CopyFromStateData* copy) {
  return !copy->volatile_defexprs && !hides_volatile_defaults(copy) &&
         !runs_volatile_code(copy->whereClause) && !SF_COPY_SKIPS_ERRORS(copy);
}

bool may_take_over(CopyRows* rows) {
  if (!reads_ahead(rows->copy)) return false;
  open_target(rows);
  bool judged;
  const bool at_once = why_row_by_row(rows->node, &judged) == nullptr;
  // COPY's copy of the trigger, which fires now, may be all that is left of it.
  if (at_once && (judged || is_partitioned(rows->node->rootResultRelInfo))) return true;
  close_target(rows);
  return false;
}

// Extensions that insert into tables other than the one that COPY names, as TimescaleDB into
// chunks, route rows themselves.
bool is_of_copy(const CopyFromStateData* copy, const RelationData* table) {
  return copy->rel->rd_id == table->rd_id ||
         copy->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
}

}  // namespace

// COPY still inserts the current row itself; we read every row after it.
void take_over(const RelationData* table) {
  void** kept = kept_for_copy();
  if (!batch_insert || kept == nullptr || *kept != nullptr || error_context_stack == nullptr ||
      error_context_stack->callback != CopyFromErrorCallback)
    return;
  auto* copy = static_cast<CopyFromState>(error_context_stack->arg);
  if (!is_of_copy(copy, table)) return;
  MemoryContext caller = MemoryContextSwitchTo(copy->copycontext);
  auto* rows = static_cast<CopyRows*>(palloc0(sizeof(CopyRows)));
  *kept = rows;
  rows->copy = copy;
  rows->has_plain_lines = has_plain_lines(copy);
  const bool may = may_take_over(rows);
  MemoryContextSwitchTo(caller);
  if (!may) return;
  rows->of_client = rows->has_plain_lines && copy->copy_src == COPY_FRONTEND;
  if (rows->of_client) copy_never_pauses();
  rows->position = position_of(copy);
  set_position(copy, {COPY_CALLBACK, ingest_the_rest, 0, 0, false, false, 0, 0, false});
}

}  // namespace streamfilter::pg
