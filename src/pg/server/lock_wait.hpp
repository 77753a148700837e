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

  // Sleeps as long as lasts() says so.
  template <typename Condition>
  void sleep_while(ConditionVariable* variable, const Condition& lasts, long most = -1) {
    ConditionVariablePrepareToSleep(variable);
    while (lasts()) sleep(variable, most);
    ConditionVariableCancelSleep();
  }

 private:
  void say_how_long(int64 passed) const;

  Oid filter_;
  int64 start_, next_notice_;  // us
};

// ---- COMMIT -------------------------------------------------------------------------------------

// Waits inside COMMIT and PREPARE TRANSACTION, where PostgreSQL has switched statement_timeout off.
// Each ends after lock_timeout or streamfilter.commit_wait_timeout, whichever is shorter, with
// 55P03 and before anything is written. A session that holds a lock others queue for never starts a
// wait that only another client can end.

// The time left for a wait. It starts with the object.
class CommitWait {
 public:
  CommitWait();

  // In ms, at least 1; 0: for ever.
  int left() const;

  // Calls wait() with lock_timeout set to the time left. An error gets the context "while waiting
  // for …", and 55P03 a HINT.
  template <typename Wait>
  void for_lock(const char* context, const Wait& wait) const {
    ErrorContextCallback callback = {error_context_stack, say_what_for, const_cast<char*>(context)};
    error_context_stack = &callback;
    const int settings = limit_lock_timeout();
    wait();
    restore_lock_timeout(settings);
    error_context_stack = callback.previous;
  }

  // Raises 55P03.
  [[noreturn]] static void raise_timeout(const char* context);

 private:
  static void say_what_for(void* context);
  int limit_lock_timeout() const;
  static void restore_lock_timeout(int settings);

  int64 start_;
};

}  // namespace streamfilter::pg
