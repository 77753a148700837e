// The next steps of a session: transactions at random. Each is drawn as a whole from the session's
// own random numbers, so that a seed gives the same programme whatever the answers are.
#pragma once

#include <string>
#include <vector>

#include "filters.hpp"
#include "random.hpp"

namespace checker {

enum class Action {
  begin,
  insert,     // into the table with the trigger
  seen,       // INSERT … SELECT … WHERE NOT streamfilter_seen()
  claim,      // INSERT INTO the filter … RETURNING, and its rows into the table
  copy,       // COPY into the table with the trigger
  block,      // PL/pgSQL blocks that catch exceptions, nested
  procedure,  // a procedure that commits after each key
  test,       // streamfilter_test()
  look,       // rows and streamfilter_test() in one statement
  remove,     // DELETE of rows and keys
  truncate,   // of the tables and the filter
  blind,      // keys of a filter without tables, added and removed regardless of other sessions
  rate,       // keys, another size, TRUNCATE of a filter that says how many it takes for others
  savepoint,
  roll_back_to,
  release,
  sleep,
  violate,  // a deferred constraint: COMMIT will fail
  alter,    // DDL on the filter, rolled back to a savepoint of its own
  change,   // DDL without effect in the end, committed
  resize,   // streamfilter_resize(), to one of two sizes, whichever it has
  save,     // streamfilter_save(), or streamfilter_merge() of its own value
  vacuum,   // of any kind: tables and the extension's heaps
  commit,
  rollback,
  prepare,
  finish,  // COMMIT or ROLLBACK PREPARED
  disconnect,
};

struct Step {
  Action action;
  int filter = 0;
  std::vector<int> keys;
  int variant = 0;  // see the statement in worker.cpp
};

struct Plan {
  std::vector<Step> steps;
  bool strict = false;    // REPEATABLE READ or SERIALIZABLE
  bool recovers = false;  // after an error, returns to a savepoint, if there is one
  int disturb_after = 0;  // microseconds after one of its requests; 0: never
  int disturb_step = 0;
  int disturb_signal = 0;  // cancel or terminate
};

// `progress` moves the range of keys that many sessions want at once.
Plan draw_plan(Random& random, uint64_t progress);

}  // namespace checker
