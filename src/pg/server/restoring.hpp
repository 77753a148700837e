// Are rows new, or were they accepted before?
#pragma once

namespace streamfilter::pg {

// Is a dump being restored, or a table copied by a subscription? Setting check_function_bodies
// tells, which pg_dump turns off so that function bodies are not checked.
bool is_restoring();

}  // namespace streamfilter::pg
