// Cancels this session's statements on other servers after an interrupt.
#pragma once

#include "pg/remote/connection.hpp"

namespace streamfilter::pg {

// Asks all servers that owe answers to cancel, at once, then reads their answers. The connection of
// a server that has not finished within a second stays busy. Raises nothing, serves no interrupts,
// and does not wait if the session is to end.
void cancel_busy_connections();

}  // namespace streamfilter::pg
