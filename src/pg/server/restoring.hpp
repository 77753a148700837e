// Is what comes in new, or has it been accepted before?
#pragma once

namespace streamfilter::pg {

// Is a dump being restored, or a table copied by a subscription? As with functions, whose bodies
// are not checked then, it is the setting check_function_bodies, which pg_dump turns off, that says
// so.
bool is_restoring();

}  // namespace streamfilter::pg
