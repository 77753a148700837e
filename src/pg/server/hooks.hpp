// Each hook of the server is taken once, in hooks.cpp. What the extension does there is a list of
// steps: pg/sql/hook_steps.cpp has all of them, in the order in which they run.
//
// A step gets the call of the hook, and goes on with it: the rest of the steps, then what others
// have hooked, then the server. It asks first whether the call concerns the extension, and
// otherwise only goes on.
#pragma once

extern "C" {
#include "catalog/objectaccess.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "storage/ipc.h"
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

  // Where several arguments have one type.
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
  // Does the database have the extension? Otherwise no step runs, but those of object_access: DROP
  // DATABASE drops others; and of shared memory, which is all databases'.
  bool (*is_wanted)();
  const MemoryCall::Step* memory_request;
  const MemoryCall::Step* memory_startup;
  const UtilityCall::Step* utility;
  const PlannerCall::Step* planner;
  const PathsCall::Step* paths;
  const ExplainCall::Step* explain;
  const StartCall::Step* executor_start;  // where something waits for the next statement
  const RunCall::Step* executor_run;      // not of what only reads, by the server's functions, nor
  const FinishCall::Step* executor_finish;  // this
  const AccessCall::Step* object_access;
};

// Called by _PG_init, once; the lists stay where they are.
void take_hooks(const HookSteps& steps);

// The statement of a utility call.
inline Node* statement_of(const UtilityCall* call) {
  return call->get<PlannedStmt*>()->utilityStmt;
}

}  // namespace streamfilter::pg
