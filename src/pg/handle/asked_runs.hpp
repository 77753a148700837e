// Refuses queries that ask a filter about rows which nobody gets: at planning, by lost_rows.hpp,
// and while they run. Setting streamfilter.lost_rows may make a WARNING of it, except where the
// answer itself would be wrong, or rows lost later.
#pragma once

#include "pg/handle/filter_handle.hpp"
#include "pg/handle/statement.hpp"

namespace streamfilter::pg {

// The step for plans; sees PostgreSQL's own. Raises 0A000, or warns.
PlannedStmt* look_for_lost_rows(PlannerCall* call);

// Call when a running query gives a filter its first key, by a call that `from` is the memory of
// (nullptr: by a node of its plan): looks at all statements that run. Raises 0A000, or warns.
void look_at_askers(const FilterHandle* filter, MemoryContext from);

// Queries that have asked a filter and are not yet at an end, and what ended ones still owe.
struct AskedRun;
extern AskedRun* asked_runs;

void begin_asked_run(const RunCall* call);
void end_asked_run(const RunCall* call);

// Runs a query by track_run().
inline void run_asker(RunCall* call) {
  if (unlikely(asked_runs != nullptr)) begin_asked_run(call);
  track_run(call);
  if (unlikely(asked_runs != nullptr)) end_asked_run(call);
}

// The step for the finish phase: track_finish(), and what a query has not been read of.
void finish_query(FinishCall* call);

// For pg/commit. Before a transaction commits or is prepared: raises as the query would have, if
// nobody has read rows that it has asked about.
void check_debts();
// At the end of a transaction, and of a subtransaction, which commits or rolls back. Cannot raise.
void end_debts();
void end_debts_of(int level, bool commits);

}  // namespace streamfilter::pg
