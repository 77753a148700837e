#include "pg/server/postgres.hpp"

#include "pg/fdw/fdw_handler.hpp"
#include "pg/fdw/import_foreign_schema.hpp"

// streamfilter_fdw_handler() → fdw_handler. ANALYZE, UPDATE and parallel scans have no callback, so
// PostgreSQL does what is right or raises an error.
SF_FUNCTION(streamfilter_fdw_handler) {
  using namespace streamfilter::pg;
  FdwRoutine* routine = makeNode(FdwRoutine);

  routine->GetForeignRelSize = get_foreign_rel_size;
  routine->GetForeignPaths = get_foreign_paths;
  routine->GetForeignPlan = get_foreign_plan;
  routine->BeginForeignScan = begin_foreign_scan;
  routine->IterateForeignScan = iterate_foreign_scan;
  routine->ReScanForeignScan = rescan_foreign_scan;
  routine->EndForeignScan = end_foreign_scan;

  routine->IsForeignRelUpdatable = is_foreign_rel_updatable;
  routine->AddForeignUpdateTargets = add_foreign_update_targets;
  routine->PlanForeignModify = plan_foreign_modify;
  routine->BeginForeignModify = begin_foreign_modify;
  routine->BeginForeignInsert = begin_foreign_insert;
  routine->ExecForeignInsert = exec_foreign_insert;
  routine->GetForeignModifyBatchSize = get_foreign_modify_batch_size;
  routine->ExecForeignBatchInsert = exec_foreign_batch_insert;
  routine->ExecForeignDelete = exec_foreign_delete;
  routine->EndForeignModify = end_foreign_modify;
  routine->EndForeignInsert = end_foreign_modify;
  routine->ExecForeignTruncate = exec_foreign_truncate;

  routine->ImportForeignSchema = import_foreign_schema;

  routine->ExplainForeignScan = explain_foreign_scan;
  routine->ExplainForeignModify = explain_foreign_modify;
  PG_RETURN_POINTER(routine);
}
