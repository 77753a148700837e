// streamfilter_settle: brings back rows that were diverted wrongly.
//
// Rows are settled in rounds. Rows whose key is in the table are deleted. For the others, the key
// is taken first, so that nobody else can add it until this transaction ends; only then, with a new
// snapshot, the table is asked for the key: the transaction that had it before either has committed
// and is visible, or has not, and the row waits.
#include "pg/server/postgres.hpp"

extern "C" {
#include "executor/spi.h"
#include "storage/itemptr.h"
#include "utils/guc.h"
}

#include "pg/handle/filter_keys.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/progress.hpp"
#include "pg/server/rows.hpp"
#include "pg/settle/settle_task.hpp"
#include "pg/trigger/divert.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kFunction = "streamfilter_settle";
constexpr int kRound = 1 << 20;  // rows; without an index on the table, each round reads it once
constexpr int kFetched = 4096;   // rows per fetch of a cursor
constexpr int kPlaceColumns = 3;

struct Settled {
  int64 restored, confirmed, waiting, duplicates;
};

// ---- rows by where they lie --------------------------------------------------------------------

struct StoredRow {
  Oid part;
  ItemPointerData at;
  TransactionId version;
};

struct StoredRows {
  int count, room;
  StoredRow* list;
};

void add_stored_row(StoredRows* places, const StoredRow& place) {
  if (places->count == places->room) {
    places->room = Max(2 * places->room, 64);
    const Size size = sizeof(StoredRow) * static_cast<Size>(places->room);
    places->list = static_cast<StoredRow*>(places->list == nullptr ? palloc(size)
                                                                   : repalloc(places->list, size));
  }
  places->list[places->count++] = place;
}

StoredRow place_of(HeapTuple row, TupleDesc type) {
  bool isnull;
  StoredRow place;
  place.part = DatumGetObjectId(SPI_getbinval(row, type, 1, &isnull));
  place.at = *reinterpret_cast<ItemPointer>(DatumGetPointer(SPI_getbinval(row, type, 2, &isnull)));
  place.version = DatumGetTransactionId(SPI_getbinval(row, type, 3, &isnull));
  return place;
}

// The arrays that the statements take.
void make_arrays(const StoredRows* places, Datum* arrays) {
  auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<Size>(places->count)));
  const auto make = [&](Oid type, int length, bool by_value, char align) {
    return PointerGetDatum(construct_array(values, places->count, type, length, by_value, align));
  };
  for (int i = 0; i < places->count; ++i) values[i] = ObjectIdGetDatum(places->list[i].part);
  arrays[0] = make(OIDOID, sizeof(Oid), true, TYPALIGN_INT);
  for (int i = 0; i < places->count; ++i) values[i] = PointerGetDatum(&places->list[i].at);
  arrays[1] = make(TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT);
  for (int i = 0; i < places->count; ++i)
    values[i] = TransactionIdGetDatum(places->list[i].version);
  arrays[2] = make(XIDOID, sizeof(TransactionId), true, TYPALIGN_INT);
  pfree(values);
}

struct Arguments {
  Oid types[kPlaceColumns];
  Datum values[kPlaceColumns];
};

Arguments arguments_for(const StoredRows* places) {
  Arguments arguments = {{OIDARRAYOID, TIDARRAYOID, XIDARRAYOID}, {}};
  make_arrays(places, arguments.values);
  return arguments;
}

// ---- statements --------------------------------------------------------------------------------

void execute_query(const char* text, const StoredRows* places, int wanted) {
  Arguments arguments = {};
  if (places != nullptr) arguments = arguments_for(places);
  const int result = SPI_execute_with_args(text, places == nullptr ? 0 : kPlaceColumns,
                                           arguments.types, arguments.values, nullptr, false, 0);
  if (result != wanted) elog(ERROR, "%s: %s", text, SPI_result_code_string(result));
}

int64 result_number(int column) {
  bool isnull;
  const Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &isnull);
  return isnull ? 0 : DatumGetInt64(value);
}

// Deletes the rows whose key is in the table.
int64 confirm(const SettleTask* task, const StoredRows* places) {
  if (places->count == 0) return 0;
  int64 confirmed = 0;
  for (int nulls = 0; nulls <= (task->equal_nulls ? 1 : 0); ++nulls) {
    execute_query(statement_for_known(task, nulls != 0), places,
                  task->keep ? SPI_OK_SELECT : SPI_OK_DELETE);
    confirmed += task->keep ? result_number(1) : static_cast<int64>(SPI_processed);
  }
  return confirmed;
}

// Confirms keys of all rows, which need not be listed.
int64 confirm_all(const SettleTask* task, const Datum* since) {
  Oid type = TIMESTAMPTZOID;
  Datum value = since == nullptr ? 0 : *since;
  int64 confirmed = 0;
  for (int nulls = 0; nulls <= (task->equal_nulls ? 1 : 0); ++nulls) {
    const char* text = statement_for_all_known(task, since != nullptr, nulls != 0);
    const int result =
        SPI_execute_with_args(text, since == nullptr ? 0 : 1, &type, &value, nullptr, false, 0);
    if (result != SPI_OK_DELETE) elog(ERROR, "%s: %s", text, SPI_result_code_string(result));
    confirmed += static_cast<int64>(SPI_processed);
  }
  return confirmed;
}

[[noreturn]] void raise_not_moved(const SettleTask* task) {
  ereport(
      ERROR, errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
      errmsg("a row of table \"%s\" was not stored in table \"%s\"", get_rel_name(task->diverted),
             get_rel_name(task->target)),
      errdetail("A trigger or a rule of the latter has discarded it or put it elsewhere."),
      errhint("Disable that, or delete the row from table \"%s\".", get_rel_name(task->diverted)));
  pg_unreachable();
}

int64 restore(const SettleTask* task, const StoredRows* places) {
  if (places->count == 0) return 0;
  const RestoredRows rows = {topmost_table(task->target), 0, false};
  while_restoring(rows,
                  [&] { execute_query(statement_for_restoring(task), places, SPI_OK_SELECT); });
  const int64 taken = result_number(1);
  if (result_number(2) != taken) raise_not_moved(task);
  return taken;
}

// ---- keys --------------------------------------------------------------------------------------

// Prepares making keys from a query's rows.
void init_row_keys(KeyCall* call, const SettleTask* task, TupleDesc source) {
  auto* types = static_cast<Oid*>(palloc(sizeof(Oid) * static_cast<Size>(task->count)));
  auto* what = static_cast<const char**>(palloc(sizeof(char*) * static_cast<Size>(task->count)));
  for (int i = 0; i < task->count; ++i) {
    types[i] = TupleDescAttr(source, kPlaceColumns + i)->atttypid;
    what[i] = psprintf("column \"%s\" of relation \"%s\"", task->columns[i].name,
                       get_rel_name(task->target));
  }
  init_key_call(call, kFunction, types, task->count, false);
  call->what = what;
}

// May the row be moved, as far as others are concerned? Then its key is this transaction's.
bool take_row_key(const SettleTask* task, KeyCall* call, HeapTuple row, TupleDesc type,
                  NullableDatum* values) {
  for (int i = 0; i < task->count; ++i)
    values[i].value = SPI_getbinval(row, type, kPlaceColumns + i + 1, &values[i].isnull);
  Element element;
  if (!build_element(&call->keys, values, &element)) return true;
  bound_time(task->filter, &element);
  if (can_take_keys(task->filter))
    return judge_key(task->filter, element, Intent::take) == Verdict::fresh;
  judge_key(task->filter, element, Intent::remember);
  return true;
}

struct KeyReader {
  const SettleTask* task;
  KeyCall call;
  NullableDatum* values;
  MemoryContext memory;  // context of a fetch
};

// Takes the fetched rows that may be moved; returns the number of the others.
int64 take_fetched(KeyReader* reader, StoredRows* taken) {
  const SettleTask* task = reader->task;
  const SPITupleTable* rows = SPI_tuptable;
  int64 waiting = 0;
  if (task->filter != nullptr)
    begin_key_call(&reader->call, task->filter->relid, Use::insert_granted);
  for (uint64 i = 0; i < rows->numvals; ++i) {
    MemoryContext caller = MemoryContextSwitchTo(reader->memory);
    const bool take = task->filter == nullptr || take_row_key(task, &reader->call, rows->vals[i],
                                                              rows->tupdesc, reader->values);
    MemoryContextSwitchTo(caller);
    if (take)
      add_stored_row(taken, place_of(rows->vals[i], rows->tupdesc));
    else
      ++waiting;
  }
  MemoryContextReset(reader->memory);
  return waiting;
}

// Takes the remaining rows that may be moved; returns the number of the others.
int64 take_keys(const SettleTask* task, const StoredRows* places, StoredRows* taken) {
  Arguments arguments = arguments_for(places);
  Portal portal = SPI_cursor_open_with_args(nullptr, query_for_rows(task), kPlaceColumns,
                                            arguments.types, arguments.values, nullptr, false, 0);
  KeyReader reader = {task, {}, nullptr, nullptr};
  if (task->filter != nullptr) init_row_keys(&reader.call, task, portal->tupDesc);
  reader.values =
      static_cast<NullableDatum*>(palloc(sizeof(NullableDatum) * static_cast<Size>(task->count)));
  reader.memory = AllocSetContextCreate(CurrentMemoryContext, "streamfilter_settle keys",
                                        ALLOCSET_DEFAULT_SIZES);
  int64 waiting = 0;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    SPI_cursor_fetch(portal, true, kFetched);
    if (SPI_processed == 0) break;
    waiting += take_fetched(&reader, taken);
    SPI_freetuptable(SPI_tuptable);
  }
  SPI_cursor_close(portal);
  return waiting;
}

// ---- rounds ------------------------------------------------------------------------------------

void settle_round(const SettleTask* task, const StoredRows* places, Settled* settled) {
  settled->confirmed += confirm(task, places);
  stop_at(FaultPoint::settle_confirmed);
  StoredRows taken = {};
  settled->waiting += take_keys(task, places, &taken);
  stop_at(FaultPoint::settle_taken);
  const int64 restored = restore(task, &taken);
  stop_at(FaultPoint::settle_restored);
  settled->restored += restored;
  if (restored < taken.count) settled->confirmed += confirm(task, &taken);
}

Portal open_places(const SettleTask* task, const Datum* since) {
  Oid type = TIMESTAMPTZOID;
  Datum value = since == nullptr ? 0 : *since;
  return SPI_cursor_open_with_args(nullptr, query_for_places(task, since != nullptr),
                                   since == nullptr ? 0 : 1, &type, &value, nullptr, false, 0);
}

// Reads at most so many places; false: there are no more after them.
bool read_places(Portal portal, int64 most, StoredRows* places) {
  while (places->count < most) {
    SPI_cursor_fetch(portal, true, static_cast<long>(Min(most - places->count, kFetched)));
    if (SPI_processed == 0) return false;
    for (uint64 i = 0; i < SPI_processed; ++i)
      add_stored_row(places, place_of(SPI_tuptable->vals[i], SPI_tuptable->tupdesc));
    SPI_freetuptable(SPI_tuptable);
  }
  return true;
}

void settle_rows(const SettleTask* task, const Datum* since, int64 most, Progress* progress,
                 Settled* settled) {
  progress->begin("settling rows", 0, "rows");
  if (most == PG_INT64_MAX && !task->keep) {
    settled->confirmed += confirm_all(task, since);
    progress->advance(static_cast<uint64>(settled->confirmed));
    stop_at(FaultPoint::settle_confirmed);
  }
  Portal portal = open_places(task, since);
  MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "streamfilter_settle round",
                                               ALLOCSET_DEFAULT_SIZES);
  for (bool more = true; more;) {
    const int64 left = most - settled->restored - settled->confirmed;
    if (left <= 0) break;
    MemoryContext caller = MemoryContextSwitchTo(memory);
    StoredRows places = {};
    more = read_places(portal, Min(left, kRound), &places);
    if (places.count > 0) settle_round(task, &places, settled);
    progress->advance(static_cast<uint64>(places.count));
    MemoryContextSwitchTo(caller);
    MemoryContextReset(memory);
  }
  SPI_cursor_close(portal);
}

enum class Duplicates : uint8 { ignore, report, remove };
constexpr const char* kDuplicatesWords[] = {"ignore", "report", "delete", nullptr};

void settle_duplicates(const SettleTask* task, Duplicates what, Progress* progress,
                       Settled* settled) {
  if (what == Duplicates::ignore) return;
  progress->begin("looking for duplicates", 0, "rows");
  if (what == Duplicates::report) {
    execute_query(query_for_duplicates(task), nullptr, SPI_OK_SELECT);
    settled->duplicates = result_number(1);
    return;
  }
  const RestoredRows rows = {topmost_table(task->target), kNoStatement, true};
  while_restoring(rows,
                  [&] { execute_query(statement_for_duplicates(task), nullptr, SPI_OK_DELETE); });
  settled->duplicates = static_cast<int64>(SPI_processed);
}

// ---- arguments ---------------------------------------------------------------------------------

Duplicates read_duplicates(const char* word) {
  const int found = find_word(kDuplicatesWords, word);
  if (found >= 0) return static_cast<Duplicates>(found);
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("invalid value for argument \"duplicates\" of %s: \"%s\"", kFunction, word),
          errhint("Give 'ignore', 'report' or 'delete'."));
  pg_unreachable();
}

int64 read_most(FunctionCallInfo fcinfo, bool keep) {
  if (PG_ARGISNULL(6)) return PG_INT64_MAX;
  const int64 most = PG_GETARG_INT64(6);
  if (most < 0)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("argument \"most\" of %s must not be negative", kFunction),
            errhint("Leave it out to settle all rows."));
  if (keep)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("arguments \"keep\" and \"most\" of %s exclude each other", kFunction),
            errdetail("Rows that are kept would be the first that the next call comes to again."),
            errhint("Use argument \"since\"."));
  return most;
}

// Rows of two tables are brought together, as the check of a new foreign key does it. Returns what
// ends it.
int raise_work_mem() {
  const int level = NewGUCNestLevel();
  if (maintenance_work_mem > work_mem)
    static_cast<void>(set_config_option("work_mem", psprintf("%d", maintenance_work_mem),
                                        PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                                        false));
  return level;
}

// An older snapshot does not see what others have restored.
void check_isolation() {
  if (!IsolationUsesXactSnapshot()) return;
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("%s does not work in a transaction that is REPEATABLE READ or SERIALIZABLE",
                 kFunction),
          errdetail("Its snapshot may be older than rows of other transactions that are to be "
                    "seen."),
          errhint("BEGIN ISOLATION LEVEL READ COMMITTED."));
}

Datum row_of(FunctionCallInfo fcinfo, const Settled& settled, bool looked_for_duplicates) {
  NamedRow row(fcinfo);
  row.put_count("restored", settled.restored);
  row.put_count("confirmed", settled.confirmed);
  row.put_count("waiting", settled.waiting);
  if (looked_for_duplicates) row.put_count("duplicates", settled.duplicates);
  return row.datum();
}

}  // namespace
}  // namespace streamfilter::pg

using namespace streamfilter::pg;

// streamfilter_settle(diverted regclass, target regclass [, columns text[] [, since timestamptz [,
// keep boolean [, duplicates text [, most bigint]]]]]) → restored, confirmed, waiting, duplicates.
// Uses the caller's rights: SELECT and DELETE on the first table, SELECT and INSERT on the second.
SF_FUNCTION(streamfilter_settle) {
  PreventCommandDuringRecovery("streamfilter_settle()");
  PreventCommandIfReadOnly("streamfilter_settle()");
  check_isolation();
  require_arguments(fcinfo, {0, 1, 4, 5});
  const bool keep = PG_GETARG_BOOL(4);
  const Duplicates duplicates = read_duplicates(text_to_cstring(PG_GETARG_TEXT_PP(5)));
  const int64 most = read_most(fcinfo, keep);
  const Datum since = PG_ARGISNULL(3) ? 0 : PG_GETARG_DATUM(3);
  SPI_connect();
  const SettleTask task =
      begin_settling(PG_GETARG_OID(0), PG_GETARG_OID(1),
                     PG_ARGISNULL(2) ? nullptr : PG_GETARG_ARRAYTYPE_P(2), !PG_ARGISNULL(3), keep);
  check_code_of_settling(&task, !PG_ARGISNULL(3));
  Progress progress(Command::settle, task.filter == nullptr ? InvalidOid : task.filter->relid,
                    "settling");
  Settled settled = {};
  const int settings = raise_work_mem();
  settle_rows(&task, PG_ARGISNULL(3) ? nullptr : &since, most, &progress, &settled);
  settle_duplicates(&task, duplicates, &progress, &settled);
  AtEOXact_GUC(false, settings);
  progress.end();
  SPI_finish();
  PG_RETURN_DATUM(row_of(fcinfo, settled, duplicates != Duplicates::ignore));
}
