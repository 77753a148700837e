// Keys of rows, and which rows have the same: diverted ones, rows of the table, and one of each.
// Keys are made as the filter's trigger makes them, and compared by the equality of the filter's
// column types, as the filter's owner. A hash only finds candidates: rows are deleted for keys that
// are equal, not for hashes that are.
#pragma once

#include "pg/handle/key_builder.hpp"
#include "pg/key/key_hash.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/settle/settle_query.hpp"

namespace streamfilter::pg {

// Make values of diverted rows values of the table.
Coercion** make_casts(const SettleTask* task, const SettleColumn* columns, int count);

// Makes and compares keys of rows of both tables.
struct RowKeys {
  const SettleTask* task;
  KeyCall call;          // with a filter,
  TypeHasher** hashers;  // and without
  KeyRule rule;
  Datum* values;  // the key made last
  bool* isnull;
  NullableDatum* row;     // its columns, as the table's types
  Coercion** from_there;  // casts of diverted rows
  TupleDesc type;         // of keys
  FmgrInfo* equal;
  Datum* kept;  // the key that is compared
  bool* no_kept;
  bool as_filter_owner;  // types of the key may have code of their own
  MemoryContext memory;  // of rows that are being read
};

// Allocates in the current memory context. Raises 42883 for a column that has no equality, and the
// errors of make_coercion and make_table_coercion.
void init_row_keys(RowKeys* keys, const SettleTask* task);

// What became of rows that raised errors.
struct Refusals {
  int64 count;
  char* reason;  // the first one's, in `memory`
  MemoryContext memory;
};
void note_refusal(Refusals* refusals, const ErrorData* error);

// Does the error tell of the server or of this transaction, not of a row?
bool is_none_of_a_row(const ErrorData* error);

// Calls run(first, end) in a savepoint, in ever smaller parts if it raises: what a row raises alone
// is told to refuse(row, error). Raises errors that are none of a row.
template <typename Run, typename Refuse>
void try_rows(int first, int end, const Run& run, const Refuse& refuse) {
  if (first >= end) return;
  ErrorData* error = error_in_savepoint([&] { run(first, end); });
  if (error == nullptr) return;
  if (is_none_of_a_row(error)) ReThrowError(error);
  if (end - first == 1) return refuse(first, error);
  const int middle = first + (end - first) / 2;
  try_rows(first, middle, run, refuse);
  try_rows(middle, end, run, refuse);
}

enum class Fate : uint8 { open, confirmed, restored, refused, gone };

struct KeyedRow {
  StoredRow place;
  int64 age;  // its time, where a column has one
  TimestampTz diverted_at;
  Element element;
  HeapTuple key;  // nullptr: it has none, so no other row has the same
  int head;       // first row of the same key
  int next;       // the next one; -1: there is none
  Fate fate;
  // Of the key, in its first row.
  int last;
  bool known;   // the table has it
  bool busy;    // an unfinished transaction has added it
  bool taken;   // this transaction has
  bool stored;  // a row of it came back
};

// Rows that are looked at together.
struct Round {
  int count, room;
  KeyedRow* rows;
  uint64* hashes;  // of the rows, once they are grouped
};

// Is row `a` older than row `b`?
bool is_older(const KeyedRow& a, const KeyedRow& b);

// Adds fetched diverted rows to the round, which is in the current memory context.
void add_diverted_rows(RowKeys* keys, const SPITupleTable* rows, Round* round, Refusals* refusals);

// Sorts the rows by key, and rows of one key by their age.
void group_rows(RowKeys* keys, Round* round);

// Is the key of a row that was stored just now, whose filter columns these are, still this one's?
bool keeps_its_key(RowKeys* keys, const SPITupleTable* stored, const KeyedRow& row);

// Marks the keys that are in the table.
void find_twins(RowKeys* keys, Round* round);

// Counts rows of the table with a key that an earlier row has; deletes them if so wished.
int64 settle_twins_in_table(RowKeys* keys, bool remove);

}  // namespace streamfilter::pg
