// What the filters made of the rows of one statement, for readers that want to be told.
#pragma once

namespace streamfilter::pg {

struct JudgedRows {
  Oid filter;
  uint64 rows;
  uint64 discarded, marked, diverted, would_discard;
};

// Is it wanted? While it is, flush_counters() hands over what was counted.
extern bool collects_judged_rows;

// Cannot raise, and so has room for the first filters only.
void add_judged_rows(const JudgedRows& more);

// From now on it is wanted, or not; what was counted so far is not meant.
void collect_judged_rows(bool wanted);

// The filters that have judged rows.
int judged_filters();
const JudgedRows& judged_by(int i);

// "3 rows discarded, 1 diverted, of 10 judged"; nullptr: no repeat. Palloc'ed.
const char* describe_judged_rows(const JudgedRows& rows);

}  // namespace streamfilter::pg
