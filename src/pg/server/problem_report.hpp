// Turns the core's problems into PostgreSQL's errors.
#pragma once

#include <type_traits>

#include "core/base/status.hpp"

namespace streamfilter::pg {

// SQLSTATEs of our own class, SF, of warnings that a session of another server recognizes. They are
// in docs/troubleshooting.md, and never change.
constexpr int kLateEvent = MAKE_SQLSTATE('S', 'F', '0', '0', '1');
constexpr int kOverfullFilter = MAKE_SQLSTATE('S', 'F', '0', '0', '2');

// Makes the core's messages hold whole characters of the database's encoding.
void init_problem_report();

// Pieces of ereport for a problem: SQLSTATE, message, and DETAIL and HINT if there are any.
// Use as ereport(level, problem_report(problem)).
int problem_report(const Problem& problem);

// Raises the problem as an ERROR.
[[noreturn]] void raise(const Problem& problem);

// An error in the catalog that is found while looking at all filters: returned as a value, so that
// the caller can go on to the next filter. Its texts lie in the current memory context.
struct Fault {
  int code = 0;  // SQLSTATE; 0: no error
  const char* message = nullptr;
  const char* detail = nullptr;
  const char* hint = nullptr;

  explicit operator bool() const { return code != 0; }

  // Set the error (printf format). They return false, so that a check can end with them.
  bool set(int sqlstate, const char* format, ...) pg_attribute_printf(3, 4);
  bool add_detail(const char* format, ...) pg_attribute_printf(2, 3);
  bool add_hint(const char* format, ...) pg_attribute_printf(2, 3);
  bool set(const Problem& problem);

  // Message and detail in one line.
  const char* text() const;
};

// ereport(level, fault_report(fault)).
int fault_report(const Fault& fault);

[[noreturn]] void raise(const Fault& fault);

// Calls run() in a savepoint of its own. Returns the error that has ended it, in the current memory
// context, so that what it has done is rolled back; nullptr if there was none. If it returns false,
// that is rolled back, too.
ErrorData* error_in_savepoint(bool (*run)(void* context), void* context);
template <typename Run>
ErrorData* error_in_savepoint(Run run) {
  const auto call = [](void* it) {
    if constexpr (std::is_void_v<decltype(run())>)
      return (*static_cast<Run*>(it))(), true;
    else
      return (*static_cast<Run*>(it))();
  };
  return error_in_savepoint(call, &run);
}

}  // namespace streamfilter::pg
