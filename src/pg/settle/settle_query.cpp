#include "pg/server/postgres.hpp"

#include "pg/catalog/lookup.hpp"
#include "pg/settle/settle_query.hpp"

namespace streamfilter::pg {
namespace {

// The planner knows that ctid is unique. With three equalities it would expect a single row, and
// read the table once for each.
constexpr const char* kThese =
    "d.ctid OPERATOR(pg_catalog.=) b.place AND CASE WHEN d.tableoid OPERATOR(pg_catalog.=) b.part "
    "THEN d.xmin OPERATOR(pg_catalog.=) b.version END";

constexpr int kMostPlaces = 1 << 16;  // in one statement

// The arrays that kThese takes.
void make_arrays(const StoredRow* places, int count, Datum* arrays) {
  auto* values = allocate_zeros<Datum>(count);
  const auto make = [&](Oid type, int length, bool by_value, char align) {
    return PointerGetDatum(construct_array(values, count, type, length, by_value, align));
  };
  for (int i = 0; i < count; ++i) values[i] = ObjectIdGetDatum(places[i].part);
  arrays[0] = make(OIDOID, sizeof(Oid), true, TYPALIGN_INT);
  for (int i = 0; i < count; ++i)
    values[i] = PointerGetDatum(const_cast<ItemPointerData*>(&places[i].at));
  arrays[1] = make(TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT);
  for (int i = 0; i < count; ++i) values[i] = TransactionIdGetDatum(places[i].version);
  arrays[2] = make(XIDOID, sizeof(TransactionId), true, TYPALIGN_INT);
  pfree(values);
}

const char* list_columns(const char* row, const SettleColumn* columns, int count) {
  TextBuffer list;
  for (int i = 0; i < count; ++i)
    appendStringInfo(&list, "%s%s%s", i == 0 ? "" : ", ", row, quote_identifier(columns[i].name));
  return list.data;
}

}  // namespace

void raise_table_changed(const char* what, const char* how) {
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("a table changed while its rows were settled"),
          errdetail_internal("%s: %s.", what, how), errhint("Call streamfilter_settle() again."));
}

StoredRow place_of(HeapTuple row, TupleDesc type) {
  bool isnull;
  StoredRow place;
  place.part = DatumGetObjectId(SPI_getbinval(row, type, 1, &isnull));
  place.at = *reinterpret_cast<ItemPointer>(DatumGetPointer(SPI_getbinval(row, type, 2, &isnull)));
  place.version = DatumGetTransactionId(SPI_getbinval(row, type, 3, &isnull));
  return place;
}

void check_unchanged(const SettleColumn* columns, int count, bool there, TupleDesc type,
                     int first) {
  for (int i = 0; i < count; ++i)
    if (TupleDescAttr(type, first + i)->atttypid !=
        (there ? columns[i].type_there : columns[i].type))
      raise_table_changed(columns[i].name, "it has another type");
}

SPIPlanPtr prepare_to_settle(const char* text, int count, Oid* types) {
  SPIPlanPtr plan = SPI_prepare(text, count, types);
  if (plan == nullptr) raise_table_changed(text, SPI_result_code_string(SPI_result));
  return plan;
}

void run_plan_to_settle(SPIPlanPtr plan, Datum* values, const char* nulls, int wanted) {
  const int result = SPI_execute_plan(plan, values, nulls, false, 0);
  if (result != wanted) raise_table_changed("SPI_execute_plan", SPI_result_code_string(result));
}

int64 delete_stored_rows(Oid table, const StoredRow* places, int count) {
  Oid types[] = {OIDARRAYOID, TIDARRAYOID, XIDARRAYOID};
  const char* text =
      psprintf("DELETE FROM %s AS d USING unnest($1, $2, $3) AS b(part, place, version) WHERE %s",
               qualified_name(table), kThese);
  const MemoryContext memory = CurrentMemoryContext;
  int64 deleted = 0;
  for (int first = 0; first < count; first += kMostPlaces) {
    Datum values[kPlaceColumns];
    make_arrays(places + first, Min(count - first, kMostPlaces), values);
    const int result = SPI_execute_with_args(text, kPlaceColumns, types, values, nullptr, false, 0);
    if (result != SPI_OK_DELETE) raise_table_changed(text, SPI_result_code_string(result));
    MemoryContextSwitchTo(memory);
    deleted += static_cast<int64>(SPI_processed);
  }
  return deleted;
}

const char* query_for_diverted(const SettleTask* task, bool since) {
  return psprintf("SELECT d.tableoid, d.ctid, d.xmin, %s%s FROM %s AS d WHERE true%s%s",
                  list_columns("d.", task->columns, task->count),
                  task->has_time ? ", d.diverted_at" : "", qualified_name(task->diverted),
                  since ? " AND d.diverted_at OPERATOR(pg_catalog.>=) $1" : "",
                  !task->others_divert
                      ? ""
                      : psprintf(" AND d.filter OPERATOR(pg_catalog.=) %u", task->filter->relid));
}

const char* query_for_keys(const SettleTask* task, bool places, const char* condition) {
  return psprintf("SELECT %s%s FROM %s AS t%s", places ? "t.tableoid, t.ctid, t.xmin, " : "",
                  list_columns("t.", task->columns, task->count), qualified_name(task->target),
                  condition);
}

const char* statement_for_taking(const SettleTask* task) {
  return psprintf(
      "DELETE FROM %s AS d WHERE d.ctid OPERATOR(pg_catalog.=) $1 AND d.tableoid "
      "OPERATOR(pg_catalog.=) $2 AND d.xmin OPERATOR(pg_catalog.=) $3 RETURNING %s",
      qualified_name(task->diverted), list_columns("d.", task->moved, task->moved_count));
}

// Identity columns get what the row has: it comes back as it was.
const char* statement_for_restoring(const SettleTask* task) {
  TextBuffer values;
  for (int i = 1; i <= task->moved_count; ++i)
    appendStringInfo(&values, "%s$%d", i > 1 ? ", " : "", i);
  return psprintf("INSERT INTO %s AS t (%s) OVERRIDING SYSTEM VALUE VALUES (%s) RETURNING %s",
                  qualified_name(task->target), list_columns("", task->moved, task->moved_count),
                  values.data, list_columns("t.", task->columns, task->count));
}

}  // namespace streamfilter::pg
