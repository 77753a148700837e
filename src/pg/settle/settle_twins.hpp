// Which rows have the same key: diverted ones, rows of the table, and one of each. A hash only
// finds candidates: rows are deleted for keys that are equal, not for hashes that are.
#pragma once

#include "pg/settle/settle_keys.hpp"

namespace streamfilter::pg {

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
  HTAB* by_hash;
};

// Is row `a` older than row `b`?
bool is_older(const KeyedRow& a, const KeyedRow& b);

// Adds fetched diverted rows to the round, which is in the current memory context.
void add_diverted_rows(RowKeys* keys, const SPITupleTable* rows, Round* round, Refusals* refusals);

// Sorts the rows by key, and rows of one key by their age.
void group_rows(RowKeys* keys, Round* round);

// Marks the keys that are in the table.
void find_twins(RowKeys* keys, Round* round);

// Counts rows of the table with a key that an earlier row has; deletes them if so wished.
int64 settle_twins_in_table(RowKeys* keys, bool remove);

}  // namespace streamfilter::pg
