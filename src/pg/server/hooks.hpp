// Takes each of PostgreSQL's hooks and callbacks once, in hooks.cpp. The extension's work there is
// a list of steps: pg/sql/module.cpp has all lists, in the order of execution.
//
// A step gets the hook's call, and continues it with go_on(): the remaining steps, then other
// extensions' hooks, then PostgreSQL. It first asks whether the call concerns the extension; if
// not, it only continues.
#pragma once

extern "C" {
#include "catalog/objectaccess.h"
#include "commands/explain.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "tcop/utility.h"
}

#include <tuple>

namespace streamfilter::pg {

template <typename Hook>
class HookCall;

template <typename Result, typename... Arguments>
class HookCall<Result (*)(Arguments...)> {
 public:
  using Server = Result (*)(Arguments...);
  using Step = Result (*)(HookCall*);

  HookCall(const Step* steps, Server server, Arguments... arguments)
      : next_(steps), server_(server), arguments_(arguments...) {}

  template <typename Argument>
  Argument get() const {
    return std::get<Argument>(arguments_);
  }

  // For arguments of equal type.
  template <std::size_t kPlace>
  auto at() const {
    return std::get<kPlace>(arguments_);
  }

  // A step calls this once.
  Result go_on() {
    if (*next_ != nullptr) return (*next_++)(this);
    return std::apply(server_, arguments_);
  }

 private:
  const Step* next_;  // the last is nullptr
  Server server_;
  std::tuple<Arguments...> arguments_;
};

using UtilityCall = HookCall<ProcessUtility_hook_type>;
using PlannerCall = HookCall<planner_hook_type>;
using PathsCall = HookCall<set_rel_pathlist_hook_type>;
using ExplainCall = HookCall<ExplainOneQuery_hook_type>;
using StartCall = HookCall<ExecutorStart_hook_type>;
using RunCall = HookCall<ExecutorRun_hook_type>;
using FinishCall = HookCall<ExecutorFinish_hook_type>;
using AccessCall = HookCall<object_access_hook_type>;
using MemoryCall = HookCall<shmem_startup_hook_type>;

// Lists that end with nullptr; nullptr instead of a list: the hook is not taken.
struct HookSteps {
  // Does the database have the extension? Otherwise only two kinds of steps run: those of
  // object_access, because DROP DATABASE drops another database, and of shared memory, which all
  // databases share.
  bool (*is_wanted)();
  const MemoryCall::Step* memory_request;
  const MemoryCall::Step* memory_startup;
  const UtilityCall::Step* utility;
  const PlannerCall::Step* planner;
  const PathsCall::Step* paths;
  const ExplainCall::Step* explain;
  const StartCall::Step* executor_start;  // only if work is waiting for the next statement
  const RunCall::Step* executor_run;  // not for queries that only read, by PostgreSQL's functions
  const FinishCall::Step* executor_finish;  // likewise
  const AccessCall::Step* object_access;    // when something is created, altered or dropped
};

// A session has ten places for callbacks of the relation cache. PostgreSQL takes two, Citus with
// its columnar storage six, and one more ends the session, so all of ours share one. Callbacks are
// registered when the library is loaded: where a place is missing, the server does not start.
// Therefore a step may run before anything of its own is set up. It must not raise.
using RelationStep = void (*)(Oid relation);  // InvalidOid: any may have changed
struct CatalogStep {
  SF_SYSCACHE_ID cache;
  SyscacheCallbackFunction step;
};

// Lists that end with nullptr.
struct Callbacks {
  const RelationStep* relation;
  const CatalogStep* catalog;
  XactCallback transaction;
  SubXactCallback subtransaction;
};

// All calls from a room to one above it. pg/sql/module.cpp says which functions answer.
struct UpwardCalls {
  // pg/trigger: a statement fires one of our triggers for its first row in a table.
  void (*on_first_row)(const RelationData* table);
  // pg/handle: a query or utility statement with rows of unknown fate ends, by an error or not.
  void (*on_end)(uint64 query);
  void (*on_error)(uint64 query);
};
extern const UpwardCalls kUpwardCalls;

// Called once, by _PG_init; the lists must stay in place.
void take_hooks(const HookSteps& steps, const Callbacks& callbacks);

// The statement of a utility call.
inline Node* statement_of(const UtilityCall* call) {
  return call->get<PlannedStmt*>()->utilityStmt;
}

// Lets servers that preload the library pay for it only where filters are used.

// Has the current transaction used a filter, or anything else that needs work at its end? Set by
// whatever needs it, reset by the coordinator (pg/commit). For other transactions the callbacks
// look at nothing else.
inline bool transaction_uses_filters = false;

}  // namespace streamfilter::pg
