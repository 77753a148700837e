// Counts of rows that filters have judged in one statement, for sessions that report them.
#pragma once

namespace streamfilter::pg {

struct JudgedRows {
  Oid filter;
  uint64 rows;
  uint64 discarded, marked, diverted, would_discard;
};

// Collecting? If so, flush_counters() adds its counts here.
extern bool collects_judged_rows;

// Cannot raise, so there is room for a fixed number of filters only.
void add_judged_rows(const JudgedRows& more);

// Starts or stops collecting; discards earlier counts.
void collect_judged_rows(bool wanted);

// Number of filters that have judged rows.
int judged_filters();
const JudgedRows& judged_by(int i);

// "3 rows discarded, 1 diverted, of 10 judged", palloc'ed; nullptr if there was no repeat.
const char* describe_judged_rows(const JudgedRows& rows);

}  // namespace streamfilter::pg
