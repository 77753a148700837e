// Compares filters with the exact truth: every row of a query goes through every filter, then a
// sort tells what each answer should have been.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/server/progress.hpp"

extern "C" {
struct Tuplesortstate;
}

namespace streamfilter::pg {

// Answers are kept as one bit per filter.
constexpr int kMaxEvaluated = 64;

// A filter on trial.
struct Candidate {
  Header* filter;
  double nanoseconds;  // spent in the filter so far
};

// A judged row of the query.
struct JudgedRow {
  int64 position;  // from 1
  int64 previous;  // position of the same key before; 0: the key is new
  double importance;
  uint64 answers;  // bit i: candidate i has called the key a repeat
};

// Fill of the candidates at some positions of the stream.
struct FillSamples {
  static constexpr int kMax = 1024;
  int count;
  int64 positions[kMax];
  float* fill;  // [sample * candidates + candidate]
};

struct Evaluation {
  int count;
  Candidate* candidates;
  int64 rows;
  FillSamples samples;
  Tuplesortstate* sort;
  Progress* progress;
  uint64 judged;  // by next_judged_row
  void* reading;  // state of next_judged_row
};

// Runs the query (first column: the key; optional second: importance; optional third: time), and
// feeds all candidates, copies of the given filters. Skips rows with a NULL key. Memory for the
// truth is limited by work_mem; the rest goes to disk. SPI must be connected.
Evaluation* evaluate(const char* query, const Header* const* filters, int count,
                     const char* function, Command command);

// The next row, in the order of keys, and of positions within a key. False: there are no more.
bool next_judged_row(Evaluation* evaluation, JudgedRow* row);

void end_evaluation(Evaluation* evaluation);

// A candidate's fill nearest to a position.
double fill_at(const Evaluation* evaluation, int candidate, int64 position);

}  // namespace streamfilter::pg
