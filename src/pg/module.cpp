#include "streamfilter/pg/pg.hpp"

#include "streamfilter/pg/batch_scan.hpp"
#include "streamfilter/pg/ddl.hpp"
#include "streamfilter/pg/executor_watch.hpp"
#include "streamfilter/pg/filter_lifecycle.hpp"
#include "streamfilter/pg/pending.hpp"
#include "streamfilter/pg/prepared_keys.hpp"
#include "streamfilter/pg/settings.hpp"
#include "streamfilter/pg/shared_state.hpp"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

// Loaded by a session instead of at server start, the library serves values, aggregates and
// streamfilter_distinct; named filters then say what is missing. Nothing here raises.
void _PG_init(void) {
  using namespace streamfilter::pg;
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
