#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/proc.h"
#include "utils/guc.h"
}

#include <algorithm>

#include "pg/server/commit_wait.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/settings.hpp"

namespace streamfilter::pg {
namespace {

int errhint_wait() {
  return errhint(
      "Repeat the transaction when the other one has ended: pg_blocking_pids and "
      "pg_prepared_xacts tell which. lock_timeout and "
      "streamfilter.commit_wait_timeout say how long COMMIT waits.");
}

}  // namespace

CommitWait::CommitWait() : start_(monotonic_us()) {}

int CommitWait::left() const {
  int longest = commit_wait_timeout_ms;
  if (LockTimeout > 0 && (longest == 0 || LockTimeout < longest)) longest = LockTimeout;
  if (longest == 0) return 0;
  const int64 passed = (monotonic_us() - start_) / 1000;
  return static_cast<int>(std::max<int64>(longest - passed, 1));
}

void CommitWait::say_what_for(void* context) {
  errcontext("%s", static_cast<const char*>(context));
  if (geterrcode() == ERRCODE_LOCK_NOT_AVAILABLE) errhint_wait();
}

// An error ends the transaction, and with it the settings of this level.
int CommitWait::limit_lock_timeout() const {
  const int level = NewGUCNestLevel();
  char ms[16];
  snprintf(ms, sizeof ms, "%d", left());
  set_config_option("lock_timeout", ms, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                    false);
  return level;
}

void CommitWait::restore_lock_timeout(int settings) { AtEOXact_GUC(true, settings); }

void CommitWait::raise_timeout(const char* context) {
  ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
          errmsg("COMMIT waited too long for another transaction"), errcontext("%s", context),
          errhint_wait());
  pg_unreachable();
}

}  // namespace streamfilter::pg
