// The statements that run, from the innermost outwards, numbered, and the COPY among them.
#pragma once

extern "C" {
#include "executor/execdesc.h"
#include "utils/fmgrprotos.h"
}

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Number of the innermost running statement, 0 if none. Numbers ascend, so nested statements have
// higher ones.
extern uint64 running_statement;
// Number of its query, counted likewise; rules can make several queries of one statement.
extern uint64 running_query;
// No statement has this number.
constexpr uint64 kNoStatement = PG_UINT64_MAX;
// Does the innermost statement run within another one?
bool is_within_statement();

// Rows of unknown fate, of the running statements (row_fate.hpp); nullptr: none.
struct PendingRow;
inline PendingRow* pending_rows = nullptr;

// A COPY that runs.
struct Copied {
  bool pauses;   // it reads what a client or a program sends
  bool chooses;  // it has a WHERE clause
  void* kept;
  uint64 rows;
  CommandId command;
};

// How many trigger functions run, one within the other.
inline int trigger_depth() { return DatumGetInt32(pg_trigger_depth(nullptr)); }

// A statement that runs. Queries that only read and call only PostgreSQL's functions are not among
// these.
struct Frame {
  const QueryDesc* query;  // nullptr for a utility statement
  const Node* statement;   // a utility statement; nullptr for a query
  Copied* copy;            // set if that is COPY
  uint64 number;
  uint64 query_number;
  int fired;                    // trigger_depth() where it began
  const Frame* below;           // the statement that runs this one
  uint64 wanted = 0;            // rows of a query, after which it stops; 0: all
  mutable bool asks = false;    // it has asked a filter itself: see asked_runs.hpp
  mutable bool hides = false;   // what it calls has asked one
  mutable bool stores = false;  // statements that it runs, not by a trigger, have changed tables
};

// nullptr: no statement runs.
const Frame* innermost_frame();
// The one that has ended last.
const Frame* last_frame();

// A place for state of the running COPY, empty when COPY begins; nullptr if a query runs instead.
void** kept_for_copy();
// The command id for rows of the COPY; triggers before them may have run other commands.
CommandId command_of_copy();
// Somebody sees to it that nobody waits for the COPY while its client sends nothing.
void copy_never_pauses();
// Adds rows to the COPY's command tag.
void count_copied(uint64 rows);

// Run a query and a utility statement, and track them. Call end_tracked() afterwards: it says what
// streamfilter.report asks for.
void track_run(RunCall* call);
void track_utility(UtilityCall* call);
void end_tracked();

// The step for the finish phase of a query.
void track_finish(FinishCall* call);

}  // namespace streamfilter::pg
