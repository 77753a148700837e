// Waits inside COMMIT and PREPARE TRANSACTION, where the server has switched statement_timeout off:
// each ends by lock_timeout or streamfilter.commit_wait_timeout, whichever is shorter, with 55P03
// and before anything is written. Nobody who holds what others queue for begins one that only
// another client can end.
#pragma once

namespace streamfilter::pg {

// What is left of the time to wait. Its start is that of the object.
class CommitWait {
 public:
  CommitWait();

  // In ms, at least 1; 0: for ever.
  int left() const;

  // Calls wait() with lock_timeout at what is left. An error gets the context, "while waiting for "
  // and so on, and a HINT if it is 55P03.
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
