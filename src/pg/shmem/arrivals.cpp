#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/s_lock.h"
}

#include "pg/server/fault_points.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/arrivals.hpp"

namespace streamfilter::pg {
namespace {

// A reader may see the filters of the session's next transaction: then the one it asked about has
// arrived.
struct alignas(PG_CACHE_LINE_SIZE) Arrival {
  pg_atomic_uint64 transaction;  // full id; 0: not marked
  pg_atomic_uint64 filters, keys, erased;
  pg_atomic_uint64 number;  // ascends in the order of marks; 0: being drawn
};

// No lock: a transaction first shows that it draws a number, and then draws it (Lamport's bakery).
// A transaction with a higher number finds it here, numbered or about to be.
struct Arrivals {
  pg_atomic_uint64 next_number;
  pg_atomic_uint32 erasing;  // marked transactions that erase keys
  pg_atomic_uint32 waiting;  // sessions waiting for `unmarked`
  ConditionVariable unmarked;
  Arrival places[FLEXIBLE_ARRAY_MEMBER];
};

Arrivals* arrivals = nullptr;
bool is_marked = false;
bool is_erasing = false;
bool is_waiting = false;
bool may_have_to_wait = false;  // this session's mark: it erases, or others did when it was set

Size bytes() {
  return add_size(offsetof(Arrivals, places),
                  mul_size(sizeof(Arrival), static_cast<Size>(MaxBackends)));
}

// Ordinary sessions come first among all processes.
Arrival* own_arrival() { return &arrivals->places[MyProc - ProcGlobal->allProcs]; }

bool do_not_commute(Arrival* a, Arrival* b) {
  const auto read = [](pg_atomic_uint64& bits) { return pg_atomic_read_u64(&bits); };
  return (read(a->filters) & read(b->filters)) != 0 &&
         ((read(a->erased) & read(b->keys)) | (read(a->keys) & read(b->erased))) != 0;
}

// The next marked place from `at` on; nullptr if there is none.
Arrival* next_marked(uint32* at, uint64* transaction) {
  const Arrival* own = own_arrival();
  while (*at < static_cast<uint32>(MaxBackends)) {
    Arrival* arrival = &arrivals->places[(*at)++];
    *transaction = pg_atomic_read_u64(&arrival->transaction);
    if (*transaction == 0 || arrival == own) continue;
    pg_read_barrier();
    return arrival;
  }
  return nullptr;
}

}  // namespace

void mark_arriving(FullTransactionId transaction, const ArrivalMark& mark) {
  Arrival* own = own_arrival();
  pg_atomic_write_u64(&own->filters, mark.filters);
  pg_atomic_write_u64(&own->keys, mark.keys);
  pg_atomic_write_u64(&own->erased, mark.erased);
  is_erasing = mark.erased != 0;
  // Counted before a number is drawn: a transaction with a higher one sees it.
  if (is_erasing) pg_atomic_fetch_add_u32(&arrivals->erasing, 1);
  pg_atomic_write_u64(&own->number, 0);
  pg_write_barrier();
  pg_atomic_write_u64(&own->transaction, U64FromFullTransactionId(transaction));
  is_marked = true;
  stop_at(FaultPoint::marking);
  const uint64 number = pg_atomic_fetch_add_u64(&arrivals->next_number, 1);
  may_have_to_wait = is_erasing || pg_atomic_read_u32(&arrivals->erasing) > 0;
  pg_atomic_write_u64(&own->number, number);
  pg_memory_barrier();
}

void unmark_arriving() {
  if (!is_marked) return;
  pg_write_barrier();
  pg_atomic_write_u64(&own_arrival()->transaction, 0);
  if (is_erasing) pg_atomic_fetch_sub_u32(&arrivals->erasing, 1);
  is_marked = false;
  // left by a wait that an error has ended
  if (is_waiting) pg_atomic_fetch_sub_u32(&arrivals->waiting, 1);
  is_waiting = false;
  pg_memory_barrier();
  if (pg_atomic_read_u32(&arrivals->waiting) > 0) ConditionVariableBroadcast(&arrivals->unmarked);
}

bool is_marked_arriving() { return is_marked; }

// 0 if that transaction is marked no more.
static uint64 commit_number_of(Arrival* other, uint64 transaction, const CommitWait& wait,
                               const char* context) {
  constexpr int kSpins = 1000;
  for (int spins = 0;; ++spins) {
    const uint64 number = pg_atomic_read_u64(&other->number);
    if (number != 0 || pg_atomic_read_u64(&other->transaction) != transaction) return number;
    if (spins < kSpins) {
      SPIN_DELAY();
      continue;
    }
    CHECK_FOR_INTERRUPTS();
    if (wait.left() == 1) CommitWait::raise_timeout(context);
    pgstat_report_wait_start(wait_event(Wait::arrivals));
    pg_usleep(1000);
    pgstat_report_wait_end();
  }
}

static bool is_earlier(Arrival* other, uint64 transaction, const CommitWait& wait,
                       const char* context) {
  Arrival* own = own_arrival();
  return do_not_commute(own, other) &&
         commit_number_of(other, transaction, wait, context) < pg_atomic_read_u64(&own->number);
}

static void wait_until_unmarked(Arrival* other, uint64 transaction, const CommitWait& wait,
                                const char* context) {
  ConditionVariablePrepareToSleep(&arrivals->unmarked);
  while (pg_atomic_read_u64(&other->transaction) == transaction) {
    const int left = wait.left();
    if (ConditionVariableTimedSleep(&arrivals->unmarked, left > 0 ? left : -1,
                                    wait_event(Wait::arrivals)))
      CommitWait::raise_timeout(context);
  }
  ConditionVariableCancelSleep();
}

void wait_for_earlier(const CommitWait& wait, const char* context) {
  if (!is_marked || !may_have_to_wait) return;
  is_waiting = true;
  pg_atomic_fetch_add_u32(&arrivals->waiting, 1);
  uint32 at = 0;
  uint64 transaction;
  while (Arrival* other = next_marked(&at, &transaction)) {
    const bool earlier = is_earlier(other, transaction, wait, context);
    pg_read_barrier();
    if (earlier) wait_until_unmarked(other, transaction, wait, context);
  }
  is_waiting = false;
  pg_atomic_fetch_sub_u32(&arrivals->waiting, 1);
}

FullTransactionId next_arriving(const FilterSlot* slot, uint32* at) {
  uint64 transaction;
  while (Arrival* arrival = next_marked(at, &transaction))
    if (pg_atomic_read_u64(&arrival->filters) & arrival_bit(slot))
      return FullTransactionIdFromU64(transaction);
  return InvalidFullTransactionId;
}

void request_arrivals() { RequestAddinShmemSpace(bytes()); }

void start_arrivals() {
  if (!attach_shared(arrivals, "streamfilter arrivals", bytes())) return;
  memset(static_cast<void*>(arrivals), 0, bytes());
  pg_atomic_init_u64(&arrivals->next_number, 1);
  ConditionVariableInit(&arrivals->unmarked);
}

}  // namespace streamfilter::pg
