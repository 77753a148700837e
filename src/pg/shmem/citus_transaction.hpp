// Sessions that work for one distributed transaction, each with a transaction of its own here.
#pragma once

extern "C" {
#include "access/transam.h"
}

namespace streamfilter::pg {

// This session's transaction is a part of that distributed one (pg/server/citus.hpp); 0: of none.
// leave_distributed_transaction is for its end and cannot raise.
void join_distributed_transaction(uint64 distributed);
void leave_distributed_transaction();

// Is the transaction, or its top-level one, another part of the same distributed transaction?
// False as well once it has ended or is prepared.
bool is_same_distributed_transaction(FullTransactionId transaction);

// For shared memory.
void request_citus_transactions();
void start_citus_transactions();

}  // namespace streamfilter::pg
