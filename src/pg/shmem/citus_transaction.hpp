// Sessions that work for one distributed transaction, each with its own transaction on this node.
#pragma once

extern "C" {
#include "access/transam.h"
}

namespace streamfilter::pg {

// Makes this session's transaction a part of the distributed one (pg/server/citus.hpp); 0: of none.
// leave_distributed_transaction ends that and cannot raise.
void join_distributed_transaction(uint64 distributed);
void leave_distributed_transaction();

// Is the transaction, or its top-level one, another part of this session's distributed transaction?
// False once it has ended or is prepared.
bool is_same_distributed_transaction(FullTransactionId transaction);

// For shared memory.
void request_citus_transactions();
void start_citus_transactions();

}  // namespace streamfilter::pg
