// Facts about Citus, if its library is loaded. Links to nothing of it, but asks settings and SQL
// functions.
#pragma once

namespace streamfilter::pg {

// Is its library loaded?
bool is_citus_loaded();

// A number for the distributed transaction that this session works for, different from all others;
// 0: none. Reads catalogs.
uint64 distributed_transaction();

// The number that Citus appends to names of a shard's objects: "events_102008". 0: the name does
// not end with one.
uint64 shard_in_name(const char* name);

// Sessions that work for one distributed transaction, each with its own transaction on this node.

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
