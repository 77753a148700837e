// Sessions that work for one distributed transaction, each with a transaction of its own here.
#pragma once

extern "C" {
#include "access/transam.h"
}

namespace streamfilter::pg {

// This session's transaction is a part of that distributed one (pg/server/citus.hpp); 0: of none.
// leave_kin is for its end and cannot raise.
void join_kin(uint64 distributed);
void leave_kin();

// Is the transaction, or that of which it is a part, another part of the same distributed one?
// False as well once it has ended or is prepared.
bool is_kin(FullTransactionId transaction);

// For shared memory.
void request_kin();
void start_kin();

}  // namespace streamfilter::pg
