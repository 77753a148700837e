// The statements of streamfilter_settle(). They read columns, delete rows by their places, and
// insert values: nothing in them casts or compares keys. Each runs as the owner of its table.
#pragma once

extern "C" {
#include "storage/itemptr.h"
}

#include "pg/handle/filter_handle.hpp"
#include "pg/key/hash_method.hpp"

namespace streamfilter::pg {

// A column of both tables, by name.
struct SettleColumn {
  const char* name;
  Oid type;  // in the table
  int32 typmod;
  Oid collation;
  Oid type_there;  // in the table of diverted rows
  int32 typmod_there;
  bool is_key;
};

struct SettleTask {
  Oid diverted, target;
  Oid diverted_owner, target_owner;
  FilterHandle* filter;  // nullptr: no filter judges the table's rows
  int count;
  SettleColumn* columns;  // parts of the filter's element
  int moved_count;
  SettleColumn* moved;  // what a row keeps that comes back
  bool others_divert;   // other tables divert rows there, too
  bool has_time;        // has column diverted_at
  bool keep;
};

// Call SPI in these only: it leaves its own memory context behind.
template <typename Run>
void as_owner_of_target(const SettleTask* task, const Run& run) {
  const MemoryContext memory = CurrentMemoryContext;
  run_as_owner(task->target, task->target_owner, run);
  MemoryContextSwitchTo(memory);
}
template <typename Run>
void as_owner_of_diverted(const SettleTask* task, const Run& run) {
  const MemoryContext memory = CurrentMemoryContext;
  run_as_owner(task->diverted, task->diverted_owner, run);
  MemoryContextSwitchTo(memory);
}

// A row by where it lies. Columns of that name come first in queries.
struct StoredRow {
  Oid part;
  ItemPointerData at;
  TransactionId version;
};
constexpr int kPlaceColumns = 3;
StoredRow place_of(HeapTuple row, TupleDesc type);

// Raises 55000: a table has changed while its rows were settled.
[[noreturn]] void raise_table_changed(const char* what, const char* how);
// Code that runs meanwhile may alter the tables. Raises 55000 unless the columns of what was read
// have, from the `first` on, the types that these had: in the diverted table if `there`.
void check_unchanged(const SettleColumn* columns, int count, bool there, TupleDesc type, int first);

// For the current role. Raises 55000 unless the statement does what it should.
SPIPlanPtr prepare_to_settle(const char* text, int count, Oid* types);
void run_plan_to_settle(SPIPlanPtr plan, Datum* values, const char* nulls, int wanted);

// Deletes these rows of a table; returns how many were still there.
int64 delete_stored_rows(Oid table, const StoredRow* places, int count);

// Places, filter columns and, if there is one, diverted_at of diverted rows: all, or those diverted
// since $1.
const char* query_for_diverted(const SettleTask* task, bool since);

// Filter columns of the table's rows; `places`: after their places; `condition`: a WHERE clause.
const char* query_for_keys(const SettleTask* task, bool places, const char* condition);

// Deletes the row of place $1, part $2 and version $3, and returns the columns that it keeps.
const char* statement_for_taking(const SettleTask* task);

// Inserts a row with these columns, $1 and so on, and returns its filter columns.
const char* statement_for_restoring(const SettleTask* task);

}  // namespace streamfilter::pg
