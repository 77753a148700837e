#include "pg/server/postgres.hpp"

extern "C" {
#include "access/parallel.h"
#include "postmaster/bgworker.h"
#include "storage/proc.h"
}

#include "pg/server/lock_wait.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/wait_events.hpp"

namespace streamfilter::pg {
namespace {

// Workers that restore have a lock_timeout of their own, for locks only.
bool is_limited() { return LockTimeout > 0 && (MyBgworkerEntry == nullptr || IsParallelWorker()); }

}  // namespace

LockWait::LockWait() : start_(monotonic_us()) {}

void LockWait::sleep(ConditionVariable* variable, long most) const {
  if (!is_limited()) {
    ConditionVariableTimedSleep(variable, most, wait_event(Wait::load));
    return;
  }
  const int64 left = LockTimeout - (monotonic_us() - start_) / 1000;
  if (left <= 0)
    ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
            errmsg("canceling statement due to lock timeout"),
            errdetail("Another session brings the state of a filter back."));
  ConditionVariableTimedSleep(variable, most < 0 ? left : Min(most, left), wait_event(Wait::load));
}

}  // namespace streamfilter::pg
