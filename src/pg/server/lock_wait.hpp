// Waits for what another session does with a filter's state. They end after lock_timeout, as waits
// for locks do. After some seconds, NOTICEs say how long it takes.
#pragma once

extern "C" {
#include "storage/condition_variable.h"
}

namespace streamfilter::pg {

class LockWait {
 public:
  explicit LockWait(Oid filter);

  // As ConditionVariableSleep, for `most` ms at most if given; may return before anything has
  // happened. Raises 55P03, too.
  void sleep(ConditionVariable* variable, long most = -1);

 private:
  void say_how_long(int64 passed) const;

  Oid filter_;
  int64 start_, next_notice_;  // us
};

}  // namespace streamfilter::pg
