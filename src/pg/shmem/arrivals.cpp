#include "pg/server/postgres.hpp"

extern "C" {
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shmem.h"
}

#include "pg/shmem/arrivals.hpp"

namespace streamfilter::pg {
namespace {

// A reader may see the filters of the session's next transaction: the one it reads has arrived.
struct Arrival {
  pg_atomic_uint64 transaction;  // full id; 0: none
  pg_atomic_uint64 filters;
};
Arrival* arrivals = nullptr;
bool is_marked = false;

Size bytes() { return mul_size(sizeof(Arrival), static_cast<Size>(MaxBackends)); }

// Ordinary sessions come first among all processes.
Arrival* own_arrival() { return &arrivals[MyProc - ProcGlobal->allProcs]; }

}  // namespace

void mark_arriving(FullTransactionId transaction, uint64 filters) {
  Arrival* own = own_arrival();
  pg_atomic_write_u64(&own->filters, filters);
  pg_write_barrier();
  pg_atomic_write_u64(&own->transaction, U64FromFullTransactionId(transaction));
  is_marked = true;
  pg_memory_barrier();
}

void unmark_arriving() {
  if (!is_marked) return;
  pg_write_barrier();
  pg_atomic_write_u64(&own_arrival()->transaction, 0);
  is_marked = false;
}

FullTransactionId next_arriving(const FilterSlot* slot, uint32* at) {
  const Arrival* own = own_arrival();
  while (*at < static_cast<uint32>(MaxBackends)) {
    Arrival* arrival = &arrivals[(*at)++];
    const uint64 transaction = pg_atomic_read_u64(&arrival->transaction);
    if (transaction == 0 || arrival == own) continue;
    pg_read_barrier();
    if (pg_atomic_read_u64(&arrival->filters) & arrival_bit(slot))
      return FullTransactionIdFromU64(transaction);
  }
  return InvalidFullTransactionId;
}

void request_arrivals() { RequestAddinShmemSpace(bytes()); }

void start_arrivals() {
  bool found;
  arrivals = static_cast<Arrival*>(ShmemInitStruct("streamfilter arrivals", bytes(), &found));
  if (found) return;
  for (int i = 0; i < MaxBackends; ++i) {
    pg_atomic_init_u64(&arrivals[i].transaction, 0);
    pg_atomic_init_u64(&arrivals[i].filters, 0);
  }
}

}  // namespace streamfilter::pg
