#include "pg/server/postgres.hpp"

extern "C" {
#include "access/subtrans.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
}

#include "pg/server/shared_memory.hpp"
#include "pg/shmem/citus_transaction.hpp"

namespace streamfilter::pg {
namespace {

// Per session, the distributed transaction that it works for.
pg_atomic_uint64* parts = nullptr;
uint64 own = 0;

Size bytes() { return mul_size(sizeof(pg_atomic_uint64), static_cast<Size>(MaxBackends)); }

// Ordinary sessions come first among all processes.
pg_atomic_uint64* part_of(const PGPROC* session) { return &parts[session - ProcGlobal->allProcs]; }

}  // namespace

void join_distributed_transaction(uint64 distributed) {
  if (distributed == own) return;
  own = distributed;
  pg_atomic_write_u64(part_of(MyProc), own);
}

void leave_distributed_transaction() {
  if (likely(own == 0)) return;
  own = 0;
  pg_atomic_write_u64(part_of(MyProc), 0);
}

bool is_same_distributed_transaction(FullTransactionId transaction) {
  if (likely(own == 0)) return false;
  const TransactionId xid = XidFromFullTransactionId(transaction);
  if (!TransactionIdIsInProgress(xid)) return false;
  const int pid = BackendXidGetPid(SubTransGetTopmostTransaction(xid));
  const PGPROC* session = pid == 0 ? nullptr : BackendPidGetProc(pid);
  return session != nullptr && session != MyProc && pg_atomic_read_u64(part_of(session)) == own;
}

void request_citus_transactions() { RequestAddinShmemSpace(bytes()); }

void start_citus_transactions() {
  if (attach_shared(parts, "streamfilter citus transactions", bytes()))
    for (int i = 0; i < MaxBackends; ++i) pg_atomic_init_u64(&parts[i], 0);
}

}  // namespace streamfilter::pg
