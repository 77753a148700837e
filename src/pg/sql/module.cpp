#include "pg/server/postgres.hpp"

#include "pg/catalog/lookup.hpp"
#include "pg/citus/citus_ddl.hpp"
#include "pg/commit/coordinator.hpp"
#include "pg/ddl/ddl_checks.hpp"
#include "pg/ddl/own_objects.hpp"
#include "pg/fdw/batch_scan_plan.hpp"
#include "pg/fdw/fdw_explain.hpp"
#include "pg/handle/asked_runs.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/handle/restore_worker.hpp"
#include "pg/handle/tree.hpp"
#include "pg/ingest/copy_ingest.hpp"
#include "pg/ingest/insert_node.hpp"
#include "pg/key/enum_births.hpp"
#include "pg/remote/connection.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/progress.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/arrivals.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/shmem/log_pages.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/shmem/unlogged_file.hpp"
#include "pg/storage/state_heaps.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/trigger/forget_trigger.hpp"
#include "pg/trigger/left_keys.hpp"
#include "pg/trigger/row_fate.hpp"

extern "C" {
#include "commands/seclabel.h"
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

namespace streamfilter::pg {
namespace {

// ---- the extension's work in each of PostgreSQL's hooks -----------------------------------------

// The steps of a list run in order: the first is the outermost, which begins before and ends after
// the others and PostgreSQL. Steps that only look at results come first; steps that must be close
// to PostgreSQL come last.

constexpr MemoryCall::Step kMemoryRequest[] = {request_shared_state, nullptr};
constexpr MemoryCall::Step kMemoryStartup[] = {start_shared_state, nullptr};

constexpr UtilityCall::Step kUtility[] = {
    close_gates,         // of filters on all nodes of Citus, before anything is locked
    check_before_ddl,    // ALTER and DROP of filters, of objects they need, and of state heaps
    move_extension,      // ALTER EXTENSION streamfilter SET SCHEMA
    send_to_nodes,       // statements for a filter on all nodes of Citus
    run_utility,         // numbers statements, for triggers
    follow_transaction,  // COMMIT PREPARED and ROLLBACK PREPARED
    nullptr,
};
constexpr UtilityCall::Step kSessionUtility[] = {follow_transaction, nullptr};

constexpr PlannerCall::Step kPlanner[] = {
    look_for_lost_rows,  // plans with streamfilter_seen()
    plan_insert,         // INSERT of a query's rows into a table with one of our triggers
    nullptr,
};

constexpr PathsCall::Step kPaths[] = {add_batch_scans, nullptr};  // streamfilter_seen() in WHERE
constexpr ExplainCall::Step kExplain[] = {explain_judged_rows, nullptr};
constexpr StartCall::Step kExecutorStart[] = {begin_query, nullptr};
constexpr RunCall::Step kExecutorRun[] = {run_query, forget_first, nullptr};
constexpr FinishCall::Step kExecutorFinish[] = {finish_query, nullptr};
constexpr AccessCall::Step kObjectAccess[] = {watch_objects, nullptr};

constexpr HookSteps kPreloadedSteps = {
    is_extension_here, kMemoryRequest, kMemoryStartup, kUtility,        kPlanner,      kPaths,
    kExplain,          kExecutorStart, kExecutorRun,   kExecutorFinish, kObjectAccess,
};

// For a library that a session has loaded by itself, without working filters and triggers.
constexpr HookSteps kSessionSteps = {
    is_extension_here, nullptr,        nullptr, kSessionUtility, nullptr, nullptr,
    nullptr,           kExecutorStart, nullptr, nullptr,         nullptr,
};

// ---- callbacks ----------------------------------------------------------------------------------

constexpr RelationStep kRelationSteps[] = {on_filter_change, on_table_change, on_heap_change,
                                           nullptr};

constexpr CatalogStep kCatalogSteps[] = {
    {FOREIGNSERVEROID, on_server_change},
    {FOREIGNSERVEROID, on_connection_change},
    {USERMAPPINGOID, on_connection_change},
    {FOREIGNTABLEREL, on_foreign_table_change},
    {FOREIGNDATAWRAPPEROID, on_wrapper_change},
    {NAMESPACEOID, on_schema_change},
    {AUTHMEMROLEMEM, on_server_change},
    {AUTHOID, on_server_change},
    {ENUMOID, on_enum_change},
    {},
};

constexpr Callbacks kCallbacks = {kRelationSteps, kCatalogSteps, at_transaction_end,
                                  at_subtransaction_end};

// ---- shared memory ------------------------------------------------------------------------------

constexpr SharedSection kSections[] = {
    {count_stored_filters, nullptr, start_unlogged_file},
    {request_in_flight, start_in_flight, nullptr},
    {request_arrivals, start_arrivals, nullptr},
    {request_citus_transactions, start_citus_transactions, nullptr},
    {request_prepared, start_prepared, nullptr},
    {request_server_health, start_server_health, nullptr},
    {request_trigger_counts, start_trigger_counts, nullptr},
    {request_progress, start_progress, nullptr},
    {request_log_pages, start_log_pages, nullptr},
#ifdef STREAMFILTER_FAULTS
    {request_fault_points, start_fault_points, nullptr},
    {request_locked_work, start_locked_work, nullptr},
#endif
    {nullptr, nullptr, report_dynamic_memory},
    {nullptr, nullptr, start_wait_events},
};

}  // namespace

const UpwardCalls kUpwardCalls = {
    take_over,  // pg/ingest: COPY
    settle_fates,
    forget_fates,
};

}  // namespace streamfilter::pg

// Loaded by a session instead of at server start, the library serves values, aggregates and
// streamfilter_distinct; named filters raise errors that say what is missing. Nothing here raises.
void _PG_init(void) {
  using namespace streamfilter::pg;
  init_problem_report();
  init_settings();
  register_label_provider("streamfilter", check_births);
  take_hooks(process_shared_preload_libraries_in_progress ? kPreloadedSteps : kSessionSteps,
             kCallbacks);
  if (!process_shared_preload_libraries_in_progress) return;
  init_shared_state(kSections, lengthof(kSections));
  init_batch_scan();
  init_insert_node();
  init_restore_worker();
}
