// The statements that streamfilter_settle() consists of. Names and operators in them are qualified;
// they run with the rights of the caller. Rows of the table of diverted rows are told by where they
// lie, in three arrays, $1 to $3: tableoid, ctid, xmin.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// A column that the two tables have in common, by name, and that the filter is given.
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
  FilterHandle* filter;  // nullptr: none judges the rows of the table
  int count;
  SettleColumn* columns;
  bool equal_nulls;    // two NULLs are one key
  bool others_divert;  // other tables divert their rows there, too
  bool has_time;       // column diverted_at
  bool keep;
};

// Where the rows lie, by a cursor: all, or those diverted since $1.
const char* query_for_places(const SettleTask* task, bool since);

// What the filter is given of those of the arrays, after where they lie, by a cursor. With
// `keep` those whose key is in the table are left out.
const char* query_for_rows(const SettleTask* task);

// Deletes those of the arrays whose key is in the table; with `keep`, counts them. With `nulls`,
// those that have a NULL in it, where two NULLs are one key; without, the others.
const char* statement_for_known(const SettleTask* task, bool nulls);

// The same of all rows, or those diverted since $1: that takes no arrays.
const char* statement_for_all_known(const SettleTask* task, bool since, bool nulls);

// Moves the first row of each key that is not in the table; says how many were taken, and how many
// have come there.
const char* statement_for_restoring(const SettleTask* task);

// Counts rows of the table that have a key which an earlier one has; or deletes them.
const char* query_for_duplicates(const SettleTask* task);
const char* statement_for_duplicates(const SettleTask* task);

}  // namespace streamfilter::pg
