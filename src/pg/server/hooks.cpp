#include "pg/server/postgres.hpp"

extern "C" {
#include "access/parallel.h"
}

#include "pg/server/deferred_messages.hpp"
#include "pg/server/hooks.hpp"

namespace streamfilter::pg {
namespace {

bool (*is_wanted)() = nullptr;

// ---- which queries concern us: others go to the server after a few instructions -----------------

constexpr auto kAny = [](auto...) { return true; };

// Work is waiting for the next statement.
constexpr auto kStarted = [](const QueryDesc*, auto...) {
  return has_deferred_messages || transaction_uses_filters;
};

constexpr auto kChanged = [](ObjectAccessType access, auto...) {
  return access == OAT_POST_CREATE || access == OAT_POST_ALTER || access == OAT_DROP;
};

// Not a query that only reads and calls only PostgreSQL's functions: a plan lists others. Plans of
// parallel workers lack that list.
constexpr auto kTracked = [](const QueryDesc* query, auto...) {
  return query->operation != CMD_SELECT || query->plannedstmt->invalItems != NIL ||
         query->plannedstmt->hasModifyingCTE || IsParallelWorker();
};

// A hook, and PostgreSQL's own function if there is no other hook.
template <auto* kHook, auto kServer, auto kConcern, bool kEverywhere = false>
class TakenHook;

template <typename Result, typename... Arguments, Result (**kHook)(Arguments...),
          Result (*kServer)(Arguments...), auto kConcern, bool kEverywhere>
class TakenHook<kHook, kServer, kConcern, kEverywhere> {
  using Call = HookCall<Result (*)(Arguments...)>;

 public:
  static void take(const typename Call::Step* its_steps) {
    if (its_steps == nullptr) return;
    steps = its_steps;
    previous = *kHook != nullptr ? *kHook : kServer;
    *kHook = run;
  }

 private:
  static inline const typename Call::Step* steps = nullptr;
  static inline typename Call::Server previous = nullptr;

  static pg_noinline Result run_steps(Arguments... arguments) {
    if (!kEverywhere && !is_wanted()) return previous(arguments...);
    Call call(steps, previous, arguments...);
    return call.go_on();
  }

  static Result run(Arguments... arguments) {
    if (!kConcern(arguments...)) return previous(arguments...);
    return run_steps(arguments...);
  }
};

void explain_one_query(Query* query, int options, IntoClause* into, ExplainState* es,
                       const char* text, ParamListInfo params, QueryEnvironment* env) {
  SF_EXPLAIN_ONE_QUERY(query, options, into, es, text, params, env);
}

void add_no_paths(PlannerInfo*, RelOptInfo*, Index, RangeTblEntry*) {}

void note_no_access(ObjectAccessType, Oid, Oid, int, void*) {}

void need_no_memory() {}

void on_relation_change(Datum steps, Oid relation) {
  for (const auto* step = reinterpret_cast<const RelationStep*>(DatumGetPointer(steps));
       *step != nullptr; ++step)
    (*step)(relation);
}

void register_callbacks(const Callbacks& callbacks) {
  CacheRegisterRelcacheCallback(on_relation_change, PointerGetDatum(callbacks.relation));
  for (const CatalogStep* entry = callbacks.catalog; entry->step != nullptr; ++entry)
    CacheRegisterSyscacheCallback(entry->cache, entry->step, static_cast<Datum>(0));
  RegisterXactCallback(callbacks.transaction, nullptr);
  RegisterSubXactCallback(callbacks.subtransaction, nullptr);
}

}  // namespace

void take_hooks(const HookSteps& steps, const Callbacks& callbacks) {
  register_callbacks(callbacks);
  is_wanted = steps.is_wanted;
  TakenHook<&shmem_request_hook, need_no_memory, kAny, true>::take(steps.memory_request);
  TakenHook<&shmem_startup_hook, need_no_memory, kAny, true>::take(steps.memory_startup);
  TakenHook<&ProcessUtility_hook, standard_ProcessUtility, kAny>::take(steps.utility);
  TakenHook<&planner_hook, standard_planner, kAny>::take(steps.planner);
  TakenHook<&set_rel_pathlist_hook, add_no_paths, kAny>::take(steps.paths);
  TakenHook<&ExplainOneQuery_hook, explain_one_query, kAny>::take(steps.explain);
  TakenHook<&ExecutorStart_hook, standard_ExecutorStart, kStarted>::take(steps.executor_start);
  TakenHook<&ExecutorRun_hook, standard_ExecutorRun, kTracked>::take(steps.executor_run);
  TakenHook<&ExecutorFinish_hook, standard_ExecutorFinish, kTracked>::take(steps.executor_finish);
  TakenHook<&object_access_hook, note_no_access, kChanged, true>::take(steps.object_access);
}

}  // namespace streamfilter::pg
