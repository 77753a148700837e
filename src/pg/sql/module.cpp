#include "pg/server/postgres.hpp"

#include "pg/ddl/ddl_checks.hpp"
#include "pg/fdw/batch_scan.hpp"
#include "pg/handle/slot_lifecycle.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/transaction/transaction_changes.hpp"
#include "pg/trigger/row_source.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

// Loaded by a session instead of at server start, the library serves values, aggregates and
// streamfilter_distinct; named filters then say what is missing. Nothing here raises.
void _PG_init(void) {
  using namespace streamfilter::pg;
  init_problem_report();
  init_settings();
  if (!process_shared_preload_libraries_in_progress) return;
  init_shared_state();
  init_lifecycle();
  init_pending();
  init_prepared_keys();
  init_executor_watch();
  init_ddl_watch();
  init_batch_scan();
}
