#include "pg/server/postgres.hpp"

#ifdef STREAMFILTER_FAULTS

#include "pg/shmem/locked_work.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kWorks = 2;
enum Held { kSlice, kDirectory, kHeld };

struct MostWork {
  pg_atomic_uint64 most[kHeld][kWorks];
};
MostWork* shared = nullptr;
LWLock *directory, *prepared;  // counted as one

LWLock* slice = nullptr;                  // the last one that was taken
uint64 in_slice[kWorks], in_all[kWorks];  // under it; in this session

// Taken exclusively by this session. Tranches beyond the last place are not counted.
struct Taken {
  const char* tranche;
  int count;
} taken[16];

void count_taken(const char* tranche) {
  for (Taken& of : taken) {
    if (of.tranche == nullptr) of.tranche = tranche;
    if (of.tranche != tranche) continue;
    ++of.count;
    return;
  }
}

void raise_to(pg_atomic_uint64* most, uint64 amount) {
  uint64 before = pg_atomic_read_u64(most);
  while (before < amount && !pg_atomic_compare_exchange_u64(most, &before, amount)) {
  }
}

}  // namespace

LWLock* note_slice_lock(LWLock* lock) {
  memset(in_slice, 0, sizeof in_slice);
  return slice = lock;
}

void note_exclusive_lock() { memset(in_all, 0, sizeof in_all); }

void count_work(Work work, uint64 amount) {
  const int kind = static_cast<int>(work);
  in_all[kind] += amount;
  if (shared == nullptr) return;
  if (slice != nullptr && LWLockHeldByMe(slice))
    raise_to(&shared->most[kSlice][kind], in_slice[kind] += amount);
  if (LWLockHeldByMe(directory) || LWLockHeldByMe(prepared))
    raise_to(&shared->most[kDirectory][kind], amount);
}

void request_locked_work() { RequestAddinShmemSpace(sizeof(MostWork)); }

void start_locked_work() {
  const bool is_new = attach_shared(shared, "streamfilter locked work");
  directory = &GetNamedLWLockTranche("streamfilter_directory")->lock;
  prepared = &GetNamedLWLockTranche("streamfilter_prepared")->lock;
  if (!is_new) return;
  memset(static_cast<void*>(shared), 0, sizeof *shared);
}

}  // namespace streamfilter::pg

using namespace streamfilter::pg;

extern "C" {
bool __real_LWLockAcquire(LWLock* lock, LWLockMode mode);
bool __wrap_LWLockAcquire(LWLock* lock, LWLockMode mode);
bool __wrap_LWLockAcquire(LWLock* lock, LWLockMode mode) {
  if (mode == LW_EXCLUSIVE) count_taken(GetLWLockIdentifier(PG_WAIT_LWLOCK, lock->tranche));
  return __real_LWLockAcquire(lock, mode);
}
}

SF_FUNCTION(streamfilter_exclusive_locks) {
  TextBuffer locks;
  for (const Taken& of : taken)
    if (of.tranche != nullptr) appendStringInfo(&locks, "%s %d\n", of.tranche, of.count);
  memset(taken, 0, sizeof taken);
  PG_RETURN_TEXT_P(cstring_to_text_with_len(locks.data, locks.len));
}

SF_FUNCTION(streamfilter_locked_work) {
  if (shared == nullptr) elog(ERROR, "streamfilter is not preloaded");
  TextBuffer work;
  for (auto& held : shared->most)
    for (pg_atomic_uint64& most : held)
      appendStringInfo(&work, UINT64_FORMAT " ", pg_atomic_read_u64(&most));
  appendStringInfo(&work, UINT64_FORMAT " " UINT64_FORMAT, in_all[0], in_all[1]);
  if (PG_GETARG_BOOL(0))
    for (auto& held : shared->most)
      for (pg_atomic_uint64& most : held) pg_atomic_write_u64(&most, 0);
  memset(in_all, 0, sizeof in_all);
  PG_RETURN_TEXT_P(cstring_to_text_with_len(work.data, work.len));
}
#endif
