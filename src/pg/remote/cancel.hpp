// Cancelling what other servers do for this session, after a statement was interrupted.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// Asks all servers that owe answers to give up, at once, and reads what they say then. Of one that
// has not ended it within a second the connection stays busy. Raises nothing, serves no interrupts,
// and does not wait where the session is to end.
void cancel_busy_connections();

}  // namespace streamfilter::pg
