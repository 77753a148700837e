// streamfilter_settle: brings back rows that were diverted wrongly.
//
// Rows are settled in rounds. Rows whose key is in the table are deleted. For the others, the key
// is taken first, so that nobody else can add it until this transaction ends; only then, with a new
// snapshot, the table is asked for the key: the transaction that had it before either has committed
// and is visible, or has not, and the row waits.
//
// A row that the table refuses stays, and the next one of its key is tried. Keys whose rows were
// all refused must not stay taken: then the round's work is undone, and done without these rows.
#include "pg/server/postgres.hpp"

#include <algorithm>

#include "pg/handle/filter_keys.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/progress.hpp"
#include "pg/settle/settle_task.hpp"
#include "pg/settle/settle_twins.hpp"
#include "pg/trigger/divert.hpp"

namespace streamfilter::pg {
namespace {

constexpr const char* kFunction = "streamfilter_settle";
constexpr int kRound = 1 << 20;  // rows; without an index on the table, each round reads it twice
constexpr int kFetched = 4096;   // rows per fetch of a cursor
constexpr int kTogether = 1024;  // rows that come back in one savepoint

struct Settled {
  int64 restored, confirmed, waiting, duplicates;
};

// A call of the function.
struct Settling {
  const SettleTask* task;
  RowKeys keys;
  SPIPlanPtr take, insert;
  Coercion** casts;  // of the columns that rows keep
  Settled settled;
  Refusals refusals;
};

void begin_moving(Settling* settling) {
  const SettleTask* task = settling->task;
  settling->casts = make_casts(task, task->moved, task->moved_count);
  auto* types = allocate_zeros<Oid>(task->moved_count);
  for (int i = 0; i < task->moved_count; ++i) types[i] = task->moved[i].type;
  Oid place[] = {TIDOID, OIDOID, XIDOID};
  as_owner_of_diverted(task, [&] {
    settling->take = prepare_to_settle(statement_for_taking(task), kPlaceColumns, place);
  });
  as_owner_of_target(task, [&] {
    settling->insert = prepare_to_settle(statement_for_restoring(task), task->moved_count, types);
  });
}

// ---- rows that come back ------------------------------------------------------------------------

// A trigger of the table does so: the row is refused.
[[noreturn]] void raise_not_moved(const SettleTask* task, bool stored) {
  ereport(ERROR, errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
          errmsg(stored ? "a row of table \"%s\" was given another key in table \"%s\""
                        : "a row of table \"%s\" was not stored in table \"%s\"",
                 get_rel_name(task->diverted), get_rel_name(task->target)));
}

// Deletes the diverted row; false: it is there no longer, or a trigger has kept it.
bool take_row(const Settling* settling, StoredRow* place, Datum* values, char* nulls) {
  const SettleTask* task = settling->task;
  Datum where[] = {PointerGetDatum(&place->at), ObjectIdGetDatum(place->part),
                   TransactionIdGetDatum(place->version)};
  as_owner_of_diverted(
      task, [&] { run_plan_to_settle(settling->take, where, nullptr, SPI_OK_DELETE_RETURNING); });
  if (SPI_processed == 0) return false;
  check_unchanged(task->moved, task->moved_count, true, SPI_tuptable->tupdesc, 0);
  for (int i = 0; i < task->moved_count; ++i) {
    bool isnull;
    const Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1, &isnull);
    values[i] = coerce(settling->casts[i], value, &isnull);
    nulls[i] = isnull ? 'n' : ' ';
  }
  return true;
}

void bring_row_back(Settling* settling, KeyedRow* row, Datum* values, char* nulls) {
  const SettleTask* task = settling->task;
  row->fate = Fate::gone;
  if (!take_row(settling, &row->place, values, nulls)) return;
  SPITupleTable* taken = SPI_tuptable;
  const Oid filter = task->filter == nullptr ? InvalidOid : task->filter->relid;
  while_restoring({topmost_table(task->target), filter, running_statement, false}, [&] {
    as_owner_of_target(task, [&] {
      run_plan_to_settle(settling->insert, values, nulls, SPI_OK_INSERT_RETURNING);
    });
  });
  if (SPI_processed != 1) raise_not_moved(task, false);
  SPITupleTable* stored = SPI_tuptable;
  if (!keeps_its_key(&settling->keys, stored, *row)) raise_not_moved(task, true);
  SPI_freetuptable(stored);
  SPI_freetuptable(taken);
  row->fate = Fate::restored;
}

// ---- keys ---------------------------------------------------------------------------------------

// Takes the keys that the table lacks; those of unfinished transactions stay theirs. Returns how
// many rows may come back, the oldest one of each key.
int take_keys(const Settling* settling, Round* round, int* rows) {
  FilterHandle* filter = settling->task->filter;
  int count = 0;
  for (int i = 0; i < round->count; ++i) {
    KeyedRow* row = &round->rows[i];
    if (row->head != i || row->known) continue;
    int open = i;
    while (open >= 0 && round->rows[open].fate != Fate::open) open = round->rows[open].next;
    if (open < 0) continue;
    row->busy = row->taken = false;
    if (filter != nullptr && row->key != nullptr) {
      use_filter(filter, Use::insert_granted);
      Element element = round->rows[open].element;
      bound_time(filter, &element);
      row->taken = true;
      if (!can_take_keys(filter))
        judge_key(filter, element, Intent::remember);
      else
        row->busy = judge_key(filter, element, Intent::take) != Verdict::fresh;
    }
    if (!row->busy) rows[count++] = open;
  }
  return count;
}

// Brings these rows back, or others of their keys.
void restore_rows(Settling* settling, Round* round, int* rows, int count) {
  auto* values = allocate_zeros<Datum>(settling->task->moved_count);
  auto* nulls = allocate_zeros<char>(settling->task->moved_count);
  const auto bring_back = [&](int first, int end) {
    for (int i = first; i < end; ++i)
      bring_row_back(settling, &round->rows[rows[i]], values, nulls);
  };
  const auto refuse = [&](int i, const ErrorData* error) {
    round->rows[rows[i]].fate = Fate::refused;
    note_refusal(&settling->refusals, error);
  };
  while (count > 0) {
    std::sort(rows, rows + count,
              [&](int a, int b) { return is_older(round->rows[a], round->rows[b]); });
    for (int first = 0; first < count; first += kTogether)
      try_rows(first, Min(first + kTogether, count), bring_back, refuse);
    int left = 0;
    for (int i = 0; i < count; ++i) {
      const KeyedRow& row = round->rows[rows[i]];
      KeyedRow* head = &round->rows[row.head];
      head->stored = row.fate == Fate::restored;
      if (head->stored) continue;
      for (rows[left] = row.next; rows[left] >= 0; rows[left] = round->rows[rows[left]].next)
        if (round->rows[rows[left]].fate == Fate::open) break;
      if (rows[left] >= 0) ++left;
    }
    count = left;
  }
}

// False: a key stayed taken, though none of its rows was stored.
bool restore_round(Settling* settling, Round* round) {
  auto* rows = allocate_zeros<int>(round->count);
  int count = take_keys(settling, round, rows);
  stop_at(FaultPoint::settle_taken);
  if (count > 0) find_twins(&settling->keys, round);
  // Without keys that turn out to be in the table.
  const auto is_known = [&](int i) { return round->rows[round->rows[i].head].known; };
  count = static_cast<int>(std::remove_if(rows, rows + count, is_known) - rows);
  restore_rows(settling, round, rows, count);
  stop_at(FaultPoint::settle_restored);
  return std::none_of(round->rows, round->rows + round->count, [](const KeyedRow& row) {
    return row.taken && !row.busy && !row.known && !row.stored;
  });
}

// False: all is undone, and to be tried without the rows that were refused or gone.
bool try_to_restore(Settling* settling, Round* round) {
  bool done = false;
  ErrorData* error = error_in_savepoint([&] { return done = restore_round(settling, round); });
  if (error != nullptr) ReThrowError(error);
  for (int i = 0; !done && i < round->count; ++i) {
    KeyedRow* row = &round->rows[i];
    row->taken = row->stored = false;
    if (row->fate == Fate::restored) row->fate = Fate::open;
  }
  return done;
}

// ---- rounds -------------------------------------------------------------------------------------

// Deletes the rows whose key is in the table by now.
void confirm(Settling* settling, Round* round) {
  const SettleTask* task = settling->task;
  auto* places = allocate_zeros<StoredRow>(round->count);
  auto* rows = allocate_zeros<int>(round->count);
  int count = 0;
  for (int i = 0; i < round->count; ++i) {
    KeyedRow* row = &round->rows[i];
    const KeyedRow& head = round->rows[row->head];
    if (row->fate != Fate::open || !(head.known || head.stored)) continue;
    row->fate = Fate::confirmed;
    rows[count] = i;
    places[count++] = row->place;
  }
  int64* confirmed = &settling->settled.confirmed;
  if (task->keep) {
    *confirmed += count;
    return;
  }
  const auto remove = [&](int first, int end) {
    as_owner_of_diverted(task, [&] {
      *confirmed += delete_stored_rows(task->diverted, places + first, end - first);
    });
  };
  try_rows(0, count, remove, [&](int i, const ErrorData* error) {
    round->rows[rows[i]].fate = Fate::refused;
    note_refusal(&settling->refusals, error);
  });
}

void settle_round(Settling* settling, Round* round) {
  group_rows(&settling->keys, round);
  find_twins(&settling->keys, round);
  confirm(settling, round);
  stop_at(FaultPoint::settle_confirmed);
  while (!try_to_restore(settling, round)) CHECK_FOR_INTERRUPTS();
  confirm(settling, round);
  for (int i = 0; i < round->count; ++i) {
    const KeyedRow& row = round->rows[i];
    settling->settled.restored += row.fate == Fate::restored;
    settling->settled.waiting += row.fate == Fate::open;
  }
}

Portal open_diverted(const SettleTask* task, const Datum* since) {
  Oid type = TIMESTAMPTZOID;
  Datum value = since == nullptr ? 0 : *since;
  Portal portal = nullptr;
  as_owner_of_diverted(task, [&] {
    portal = SPI_cursor_open_with_args(nullptr, query_for_diverted(task, since != nullptr),
                                       since == nullptr ? 0 : 1, &type, &value, nullptr, false, 0);
  });
  return portal;
}

// Reads at most so many rows, and no more than memory is for; false: there are no more after them.
bool read_round(Settling* settling, Portal portal, int64 most, Round* round) {
  const Size memory = static_cast<Size>(maintenance_work_mem) * 1024 / 2;
  while (round->count < most &&
         (round->count == 0 || MemoryContextMemAllocated(CurrentMemoryContext, true) < memory)) {
    as_owner_of_diverted(settling->task, [&] {
      SPI_cursor_fetch(portal, true, static_cast<long>(Min(most - round->count, kFetched)));
    });
    SPITupleTable* rows = SPI_tuptable;
    if (SPI_processed == 0) return false;
    add_diverted_rows(&settling->keys, rows, round, &settling->refusals);
    SPI_freetuptable(rows);
  }
  return true;
}

void settle_rows(Settling* settling, const Datum* since, int64 most, Progress* progress) {
  const Settled& settled = settling->settled;
  progress->begin("settling rows", 0, "rows");
  Portal portal = open_diverted(settling->task, since);
  MemoryContext memory = make_context("streamfilter_settle round");
  for (bool more = true; more;) {
    const int64 left = most - settled.restored - settled.confirmed;
    if (left <= 0) break;
    MemoryContext caller = MemoryContextSwitchTo(memory);
    Round round = {};
    more = read_round(settling, portal, Min(left, kRound), &round);
    if (round.count > 0) settle_round(settling, &round);
    progress->advance(static_cast<uint64>(round.count));
    MemoryContextSwitchTo(caller);
    MemoryContextReset(memory);
  }
  as_owner_of_diverted(settling->task, [&] { SPI_cursor_close(portal); });
}

void warn_of_refusals(const Settling* settling) {
  const SettleTask* task = settling->task;
  if (settling->refusals.count == 0) return;
  ereport(WARNING,
          errmsg("could not settle %lld %s of table \"%s\"",
                 static_cast<long long>(settling->refusals.count),
                 settling->refusals.count == 1 ? "row" : "rows", get_rel_name(task->diverted)),
          errdetail("The first reason: %s.", settling->refusals.reason),
          errhint("Mend what refuses them, or delete the rows from table \"%s\", and call "
                  "streamfilter_settle() again.",
                  get_rel_name(task->diverted)));
}

enum class Duplicates : uint8 { ignore, report, remove };
constexpr const char* kDuplicatesWords[] = {"ignore", "report", "delete", nullptr};

// ---- arguments ---------------------------------------------------------------------------------

Duplicates read_duplicates(const char* word) {
  const int found = find_word(kDuplicatesWords, word);
  if (found >= 0) return static_cast<Duplicates>(found);
  ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
          errmsg("invalid value for argument \"duplicates\" of %s: \"%s\"", kFunction, word),
          errhint("Give 'ignore', 'report' or 'delete'."));
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

// Rows of a call are in the hands of that call.
void check_not_nested() {
  if (!OidIsValid(restored_rows.table)) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("%s is already running in this session", kFunction),
          errdetail("A trigger, default or check of one of its tables has called it."),
          errhint("Leave it to the statement that has called it first."));
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

void settle_all(Settling* settling, const Datum* since, int64 most, Duplicates duplicates) {
  const FilterHandle* filter = settling->task->filter;
  init_row_keys(&settling->keys, settling->task);
  begin_moving(settling);
  Progress progress(Command::settle, filter == nullptr ? InvalidOid : filter->relid, "settling");
  settle_rows(settling, since, most, &progress);
  if (duplicates != Duplicates::ignore) {
    progress.begin("looking for duplicates", 0, "rows");
    settling->settled.duplicates =
        settle_twins_in_table(&settling->keys, duplicates == Duplicates::remove);
  }
  progress.end();
}

Datum row_of(FunctionCallInfo fcinfo, const Settling& settling, bool looked_for_duplicates) {
  const Settled& settled = settling.settled;
  NamedRow row(fcinfo);
  row.put_count("restored", settled.restored);
  row.put_count("confirmed", settled.confirmed);
  row.put_count("waiting", settled.waiting);
  row.put_count("refused", settling.refusals.count);
  if (looked_for_duplicates) row.put_count("duplicates", settled.duplicates);
  return row.datum();
}

}  // namespace

// streamfilter_settle(diverted regclass, target regclass [, columns text[] [, since timestamptz [,
// keep boolean [, duplicates text [, most bigint]]]]]) → restored, confirmed, waiting, refused,
// duplicates. The caller needs the rights that begin_settling() names; what the tables and the
// filter have of code runs as their owners.
SF_FUNCTION(streamfilter_settle) {
  require_writable("streamfilter_settle()");
  check_isolation();
  check_not_nested();
  require_arguments(fcinfo, {0, 1, 4, 5});
  const bool keep = PG_GETARG_BOOL(4);
  const Duplicates duplicates = read_duplicates(text_to_cstring(PG_GETARG_TEXT_PP(5)));
  const int64 most = read_most(fcinfo, keep);
  const Datum since = PG_ARGISNULL(3) ? 0 : PG_GETARG_DATUM(3);
  SPI_connect();
  const SettleTask task = begin_settling(PG_GETARG_OID(0), PG_GETARG_OID(1),
                                         PG_ARGISNULL(2) ? nullptr : PG_GETARG_ARRAYTYPE_P(2),
                                         !PG_ARGISNULL(3), keep, duplicates == Duplicates::remove);
  Settling settling = {};
  settling.task = &task;
  settling.refusals.memory = CurrentMemoryContext;
  while_restoring({topmost_table(task.target), InvalidOid, kNoStatement, false}, [&] {
    settle_all(&settling, PG_ARGISNULL(3) ? nullptr : &since, most, duplicates);
  });
  warn_of_refusals(&settling);
  SPI_finish();
  PG_RETURN_DATUM(row_of(fcinfo, settling, duplicates != Duplicates::ignore));
}

}  // namespace streamfilter::pg
