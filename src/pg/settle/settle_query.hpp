// The statements of streamfilter_settle(), with qualified names and operators, run with the
// caller's rights. Rows of the table of diverted rows are named by their places, in three arrays,
// $1 to $3: tableoid, ctid, xmin.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// A column of both tables, by name, that is part of the filter's element.
struct SettleColumn {
  const char* name;
  Oid type;  // in the table
  int32 typmod;
  Oid type_there;  // in the table of diverted rows
  int32 typmod_there;
  Oid compared_as;
  int32 compared_typmod;
  Oid collation;
  bool is_key;
  bool is_time;
};

struct SettleTask {
  Oid diverted, target;
  FilterHandle* filter;  // nullptr: no filter judges the table's rows
  int count;
  SettleColumn* columns;
  bool equal_nulls;    // two NULLs are one key
  bool others_divert;  // other tables divert rows there, too
  bool has_time;       // has column diverted_at
  bool keep;
};

// Cursor query for the places of rows: all, or those diverted since $1.
const char* query_for_places(const SettleTask* task, bool since);

// Cursor query for places and filter columns of the rows in the arrays. With `keep`, leaves out
// rows whose key is in the table.
const char* query_for_rows(const SettleTask* task);

// Deletes those of the arrays whose key is in the table; with `keep`, counts them. With `nulls`,
// those that have a NULL in it, where two NULLs are one key; without, the others.
const char* statement_for_known(const SettleTask* task, bool nulls);

// The statement for all rows, or those diverted since $1: it takes no arrays.
const char* statement_for_all_known(const SettleTask* task, bool since, bool nulls);

// Moves the first row of each key that is not in the table; returns how many were taken, and how
// many have arrived.
const char* statement_for_restoring(const SettleTask* task);

// Counts or deletes rows of the table with a key that an earlier row has.
const char* query_for_duplicates(const SettleTask* task);
const char* statement_for_duplicates(const SettleTask* task);

// Whose code the statements of streamfilter_settle() would run in the caller's name.

// Call it within SPI, before any statement of the task is planned: that runs constant parts of
// expressions. Raises 42501 if a type, cast, comparison or index that the statements use belongs to
// a role that is neither the caller nor a superuser. Triggers, defaults, generated columns,
// partition keys and CHECK constraints of the two tables are not looked at: they run as for any
// DELETE and INSERT.
void check_code_of_settling(const SettleTask* task, bool since);

}  // namespace streamfilter::pg
