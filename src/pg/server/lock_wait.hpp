// Waits for what another session does with a filter's state. They end after lock_timeout, as waits
// for locks do.
#pragma once

extern "C" {
#include "storage/condition_variable.h"
}

namespace streamfilter::pg {

class LockWait {
 public:
  LockWait();

  // As ConditionVariableSleep, for `most` ms at most if given. Raises 55P03, too.
  void sleep(ConditionVariable* variable, long most = -1) const;

 private:
  int64 start_;
};

}  // namespace streamfilter::pg
