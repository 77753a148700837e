// From the core's problems to the server's errors.
#pragma once

#include "core/base/status.hpp"

namespace streamfilter::pg {

// The core's messages hold whole characters of the database's encoding.
void init_problem_report();

// The SQLSTATE for a class of problem.
int sqlstate(Error error) noexcept;

// Pieces of ereport for a problem: SQLSTATE, message, and DETAIL and HINT if there are any.
// Use as ereport(level, problem_report(problem)).
int problem_report(const Problem& problem);

// Raises the problem as an ERROR.
[[noreturn]] void raise(const Problem& problem);

}  // namespace streamfilter::pg
