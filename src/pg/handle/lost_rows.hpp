// Finds, in a finished plan, rows that are removed above `NOT streamfilter_seen(…)`: the filter has
// remembered them, so they are lost.
#pragma once

namespace streamfilter::pg {

// What loses rows.
enum class Loss : uint8 {
  none,
  limit,
  distinct,
  aggregate,
  join,
  condition,
  filters,
  expression,
  set_function,
  subquery,
  conflict,
  merge,
  skip_locked,
  explain,
  // while a query runs
  moved,
  left,
  target,
  // always an error
  recheck,
  held,
  materialized,
};

struct LostRows {
  bool asks;             // the plan asks a filter
  Loss loss;             // the first loss found
  const Node* filter;    // argument of the call that asks; nullptr: none is known
  const char* function;  // that may ask, if such were looked for
};

struct PlanView {
  Loss top;      // what happens to the rows of the whole plan
  bool limited;  // it is not read to its end
  bool hidden;   // functions in SQL and other languages count as questions: they may ask
};

LostRows find_lost_rows(const PlannedStmt* statement, const PlanView& view);

// Is it a call of streamfilter_seen()?
bool is_seen_call(const FuncExpr* call);
// Has an expression or a query one? `context` is not used.
bool calls_seen(Node* node, void* context);
// Does a plan of this session have one? Takes no walk.
bool has_seen_call(const PlannedStmt* statement);

}  // namespace streamfilter::pg
