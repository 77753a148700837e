// The steps of a list run in order: the first is the outermost, which begins before and ends after
// the others and PostgreSQL. Steps that only look at results come first; steps that must be close
// to PostgreSQL come last.
#include "pg/server/postgres.hpp"

#include "pg/catalog/extension_presence.hpp"
#include "pg/commit/coordinator.hpp"
#include "pg/ddl/citus_ddl.hpp"
#include "pg/ddl/ddl_checks.hpp"
#include "pg/ddl/extension_schema.hpp"
#include "pg/fdw/batch_scan.hpp"
#include "pg/fdw/explain_judged.hpp"
#include "pg/fdw/lost_rows.hpp"
#include "pg/ingest/copy_ingest.hpp"
#include "pg/ingest/insert_plan.hpp"
#include "pg/ingest/waiting_code.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/sql/hook_steps.hpp"
#include "pg/trigger/citus_nodes.hpp"
#include "pg/trigger/row_source.hpp"

namespace streamfilter::pg {
namespace {

constexpr MemoryCall::Step kMemoryRequest[] = {request_shared_state, nullptr};
constexpr MemoryCall::Step kMemoryStartup[] = {start_shared_state, nullptr};

constexpr UtilityCall::Step kUtility[] = {
    note_explain,        // EXPLAIN, and the queries it runs
    check_before_ddl,    // ALTER and DROP of filters, of objects they need, and of state heaps
    move_extension,      // ALTER EXTENSION streamfilter SET SCHEMA
    send_to_nodes,       // statements for a filter on all nodes of Citus
    track_utility,       // numbers statements, for triggers
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
constexpr RunCall::Step kExecutorRun[] = {check_settings_reach, track_run, nullptr};
constexpr FinishCall::Step kExecutorFinish[] = {track_finish, nullptr};
constexpr AccessCall::Step kObjectAccess[] = {watch_objects, nullptr};

}  // namespace

const UpwardCalls kUpwardCalls = {
    take_over,           // pg/ingest: COPY
    may_statement_wait,  // pg/ingest
};

const HookSteps kPreloadedSteps = {
    is_extension_here, kMemoryRequest, kMemoryStartup, kUtility,        kPlanner,      kPaths,
    kExplain,          kExecutorStart, kExecutorRun,   kExecutorFinish, kObjectAccess,
};

const HookSteps kSessionSteps = {
    is_extension_here, nullptr,        nullptr, kSessionUtility, nullptr, nullptr,
    nullptr,           kExecutorStart, nullptr, nullptr,         nullptr,
};

}  // namespace streamfilter::pg
