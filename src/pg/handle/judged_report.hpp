// What becomes of repeats, with the counters of each outcome; and counts of rows that filters have
// judged in one statement, for sessions that report them.
#pragma once

#include "pg/shmem/counter_list.hpp"

namespace streamfilter::pg {

// What becomes of a row whose key is a repeat, the counter for it of filter and trigger, and words.
#define STREAMFILTER_OUTCOMES(OUTCOME)       \
  OUTCOME(discarded, discarded, "discarded") \
  OUTCOME(marked, discarded, "marked")       \
  OUTCOME(diverted, diverted, "diverted")    \
  OUTCOME(would_discard, would_discard, "would be discarded")

#define STREAMFILTER_OUTCOME_NAME(name, counter, words) name,
#define STREAMFILTER_OUTCOME_ROW_COUNT(name, counter, words) RowCount::counter,
#define STREAMFILTER_OUTCOME_TRIGGER_COUNT(name, counter, words) TriggerCount::counter,
#define STREAMFILTER_OUTCOME_WORDS(name, counter, words) words,

enum class Outcome : uint8 { STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_NAME) };

constexpr RowCount kRowCountOf[] = {STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_ROW_COUNT)};
constexpr TriggerCount kTriggerCountOf[] = {
    STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_TRIGGER_COUNT)};
constexpr const char* kWordsOf[] = {STREAMFILTER_OUTCOMES(STREAMFILTER_OUTCOME_WORDS)};
constexpr int kOutcomes = lengthof(kWordsOf);

struct JudgedRows {
  Oid filter;
  uint64 rows;
  uint64 repeats[kOutcomes];

  uint64& operator[](Outcome outcome) { return repeats[static_cast<int>(outcome)]; }
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
