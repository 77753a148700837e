// Keys of rows, made as the filter's trigger makes them, and compared by the equality of the
// filter's column types, as the filter's owner. What the table's types have of code runs as its
// owner. Rows may raise errors.
#pragma once

extern "C" {
#include "access/xact.h"
#include "utils/resowner.h"
}

#include "pg/handle/key_builder.hpp"
#include "pg/key/key_hash.hpp"
#include "pg/settle/settle_query.hpp"

namespace streamfilter::pg {

template <typename T>
T* allocate(int count) {
  return static_cast<T*>(palloc0(sizeof(T) * static_cast<Size>(Max(count, 1))));
}

// Makes and compares keys of rows of both tables.
struct RowKeys {
  const SettleTask* task;
  KeyCall call;          // with a filter,
  TypeHasher** hashers;  // and without
  KeyRule rule;
  Datum* values;  // the key made last
  bool* isnull;
  NullableDatum* row;     // its columns, as the table's types
  Coercion** from_there;  // makes values of diverted rows values of the table
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

// The filter may have been altered since the last rows.
void ready_row_keys(RowKeys* keys);

// The key of a row of the table, or of the diverted ones; the filter's columns come after `column`.
// False: it has none.
bool make_row_key(RowKeys* keys, HeapTuple row, TupleDesc type, int column, bool from_there,
                  Element* element);

// Is a key that was kept, as a row of keys->type, equal to these values?
bool is_kept_key(RowKeys* keys, HeapTuple key, const Datum* values, const bool* isnull);

// ---- rows that may raise errors

// What became of them.
struct Refusals {
  int64 count;
  char* reason;  // the first one's, in `memory`
  MemoryContext memory;
};
void note_refusal(Refusals* refusals, const ErrorData* error);

// Does the error tell of the server or of this transaction, not of a row?
bool is_none_of_a_row(const ErrorData* error);

// Calls run() in a savepoint. nullptr: no error was raised.
template <typename Run>
pg_noinline ErrorData* run_in_savepoint(const Run& run) {
  const MemoryContext memory = CurrentMemoryContext;
  const ResourceOwner owner = CurrentResourceOwner;
  ErrorData* volatile error = nullptr;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(memory);
  PG_TRY();
  {
    run();
    ReleaseCurrentSubTransaction();
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(memory);
    error = CopyErrorData();
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
  }
  PG_END_TRY();
  MemoryContextSwitchTo(memory);
  CurrentResourceOwner = owner;
  if (error != nullptr && is_none_of_a_row(error)) ReThrowError(error);
  return error;
}

// Calls run(first, end) in a savepoint, in ever smaller parts if it raises: what a row raises alone
// is told to refuse(row, error). Raises errors that are none of a row.
template <typename Run, typename Refuse>
void try_rows(int first, int end, const Run& run, const Refuse& refuse) {
  if (first >= end) return;
  const ErrorData* error = run_in_savepoint([&] { run(first, end); });
  if (error == nullptr) return;
  if (end - first == 1) return refuse(first, error);
  const int middle = first + (end - first) / 2;
  try_rows(first, middle, run, refuse);
  try_rows(middle, end, run, refuse);
}

}  // namespace streamfilter::pg
