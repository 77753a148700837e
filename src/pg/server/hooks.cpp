#include "pg/server/postgres.hpp"

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {
namespace {

bool (*is_wanted)() = nullptr;

// A hook of the server, and what the server does where nobody has hooked it.
template <auto* kHook, auto kServer, bool kEverywhere = false>
class TakenHook;

template <typename Result, typename... Arguments, Result (**kHook)(Arguments...),
          Result (*kServer)(Arguments...), bool kEverywhere>
class TakenHook<kHook, kServer, kEverywhere> {
  using Call = HookCall<Result (*)(Arguments...)>;

 public:
  static void take(const typename Call::Step* its_steps) {
    if (its_steps == nullptr) return;
    steps = its_steps;
    previous = *kHook;
    *kHook = run;
  }

 private:
  static inline const typename Call::Step* steps = nullptr;
  static inline typename Call::Server previous = nullptr;

  static Result run(Arguments... arguments) {
    const typename Call::Server server = previous != nullptr ? previous : kServer;
    if (!kEverywhere && !is_wanted()) return server(arguments...);
    Call call(steps, server, arguments...);
    return call.go_on();
  }
};

void explain_one_query(Query* query, int options, IntoClause* into, ExplainState* es,
                       const char* text, ParamListInfo params, QueryEnvironment* env) {
  SF_EXPLAIN_ONE_QUERY(query, options, into, es, text, params, env);
}

void add_no_paths(PlannerInfo*, RelOptInfo*, Index, RangeTblEntry*) {}

void note_no_access(ObjectAccessType, Oid, Oid, int, void*) {}

void need_no_memory() {}

}  // namespace

void take_hooks(const HookSteps& steps) {
  is_wanted = steps.is_wanted;
  TakenHook<&shmem_request_hook, need_no_memory, true>::take(steps.memory_request);
  TakenHook<&shmem_startup_hook, need_no_memory, true>::take(steps.memory_startup);
  TakenHook<&ProcessUtility_hook, standard_ProcessUtility>::take(steps.utility);
  TakenHook<&planner_hook, standard_planner>::take(steps.planner);
  TakenHook<&set_rel_pathlist_hook, add_no_paths>::take(steps.paths);
  TakenHook<&ExplainOneQuery_hook, explain_one_query>::take(steps.explain);
  TakenHook<&ExecutorStart_hook, standard_ExecutorStart>::take(steps.executor_start);
  TakenHook<&ExecutorRun_hook, standard_ExecutorRun>::take(steps.executor_run);
  TakenHook<&ExecutorFinish_hook, standard_ExecutorFinish>::take(steps.executor_finish);
  TakenHook<&object_access_hook, note_no_access, true>::take(steps.object_access);
}

}  // namespace streamfilter::pg
