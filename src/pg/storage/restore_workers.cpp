#include "pg/server/postgres.hpp"

extern "C" {
#include "access/xlog.h"
#include "miscadmin.h"
}

#include "pg/server/settings.hpp"
#include "pg/storage/restore_workers.hpp"

namespace streamfilter::pg {

bool is_restore_worker = false, opens_early = false;

BackgroundWorker make_restore_worker(const char* function, const char* name) {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_ConsistentState;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  strlcpy(worker.bgw_library_name, "streamfilter", sizeof worker.bgw_library_name);
  strlcpy(worker.bgw_function_name, function, sizeof worker.bgw_function_name);
  strlcpy(worker.bgw_name, name, sizeof worker.bgw_name);
  strlcpy(worker.bgw_type, name, sizeof worker.bgw_type);
  return worker;
}

BackgroundWorkerHandle* start_restore_worker(Oid database, Oid filter) {
  if (restore_workers == 0 || !IsUnderPostmaster) return nullptr;
  BackgroundWorker worker =
      make_restore_worker("streamfilter_restore_worker", "streamfilter restore");
  worker.bgw_main_arg = ObjectIdGetDatum(database);
  memcpy(worker.bgw_extra, &filter, sizeof filter);
  worker.bgw_notify_pid = MyProcPid;
  BackgroundWorkerHandle* handle = nullptr;
  return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : nullptr;
}

bool is_running(BackgroundWorkerHandle* worker) {
  pid_t pid;
  const BgwHandleStatus status = GetBackgroundWorkerPid(worker, &pid);
  return status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED;
}

}  // namespace streamfilter::pg
