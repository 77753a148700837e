#include "pg/server/postgres.hpp"

extern "C" {
#include "access/parallel.h"
#include "postmaster/bgworker.h"
}

#include <algorithm>

#include "pg/server/lock_wait.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/progress.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/wait_events.hpp"

namespace streamfilter::pg {
constexpr int64 kQuiet = 2 * USECS_PER_SEC;     // before the first notice
constexpr int64 kInterval = 5 * USECS_PER_SEC;  // between notices

// Workers that restore have a lock_timeout of their own, for locks only.
static bool is_limited() {
  return LockTimeout > 0 && (MyBgworkerEntry == nullptr || IsParallelWorker());
}

LockWait::LockWait(Oid filter)
    : filter_(filter), start_(monotonic_us()), next_notice_(start_ + kQuiet) {}

void LockWait::say_how_long(int64 passed) const {
  const char* name = get_rel_name(filter_);
  if (name == nullptr) return;
  const double left = seconds_left(Command::restore, filter_);
  if (left >= 0)
    ereport(NOTICE,
            errmsg("waiting for filter \"%s\" to be restored: about %.0f s left", name, left));
  else
    ereport(NOTICE, errmsg("waiting for filter \"%s\" to be restored: %.0f s so far", name,
                           static_cast<double>(passed) / USECS_PER_SEC));
}

void LockWait::sleep(ConditionVariable* variable, long most) {
  const int64 now = monotonic_us();
  if (now >= next_notice_) {
    next_notice_ = now + kInterval;
    say_how_long(now - start_);
  }
  int64 longest = (next_notice_ - now) / 1000 + 1;
  if (most >= 0) longest = std::min<int64>(longest, most);
  if (is_limited()) {
    const int64 left = LockTimeout - (now - start_) / 1000;
    if (left <= 0)
      ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
              errmsg("canceling statement due to lock timeout"),
              errdetail("Another session brings the state of a filter back."));
    longest = std::min(longest, left);
  }
  ConditionVariableTimedSleep(variable, longest, wait_event(Wait::load));
}

// ---- COMMIT -------------------------------------------------------------------------------------

static int errhint_wait() {
  return errhint(
      "Repeat the transaction when the other one has ended: pg_blocking_pids and "
      "pg_prepared_xacts tell which. lock_timeout and "
      "streamfilter.commit_wait_timeout say how long COMMIT waits.");
}

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
}

}  // namespace streamfilter::pg
