#include "pg/server/postgres.hpp"

#include "pg/commit/coordinator.hpp"
#include "pg/fdw/batch_scan.hpp"
#include "pg/ingest/insert_node.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/progress.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/arrivals.hpp"
#include "pg/shmem/citus_transaction.hpp"
#include "pg/shmem/dynamic_memory.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/shmem/in_flight_table.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/shmem/log_pages.hpp"
#include "pg/shmem/server_health.hpp"
#include "pg/shmem/trigger_counts.hpp"
#include "pg/shmem/unlogged_file.hpp"
#include "pg/sql/hook_steps.hpp"
#include "pg/sql/restore_worker.hpp"
#include "pg/transaction/prepared_transactions.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

namespace streamfilter::pg {
namespace {

constexpr SharedSection kSections[] = {
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
    {nullptr, nullptr, start_unlogged_file},
};

}  // namespace
}  // namespace streamfilter::pg

// Loaded by a session instead of at server start, the library serves values, aggregates and
// streamfilter_distinct; named filters raise errors that say what is missing. Nothing here raises.
void _PG_init(void) {
  using namespace streamfilter::pg;
  init_problem_report();
  init_settings();
  init_coordinator();
  take_hooks(process_shared_preload_libraries_in_progress ? kPreloadedSteps : kSessionSteps);
  if (!process_shared_preload_libraries_in_progress) return;
  init_shared_state(kSections, lengthof(kSections));
  init_batch_scan();
  init_insert_node();
  init_restore_worker();
}
