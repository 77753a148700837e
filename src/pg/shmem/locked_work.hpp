// What is done while others wait, counted in place of seconds: only in a build with FAULTS=1.
//
//   streamfilter_locked_work(again boolean) → text
//     of all sessions: bytes of state that were copied, formatted or searched under one slice's
//     lock, at most, and rows of the heaps that were read or written under any; the same under
//     directory_lock or the lock of prepared keys; then, of this session since the last call, or
//     since streamfilter_resize() had locked its filter, bytes and rows whatever was locked.
//     `again`: all begins at 0.
//   streamfilter_exclusive_locks, no arguments → text
//     which LWLocks this session has taken exclusively since the last call, and how often:
//     "name count", a line each
#pragma once

extern "C" {
#include "storage/lwlock.h"
}

namespace streamfilter::pg {

enum class Work : uint8 { bytes, rows };

#ifdef STREAMFILTER_FAULTS
void count_work(Work work, uint64 amount);
// This process is about to take a slice's lock. Returns it.
LWLock* note_slice_lock(LWLock* lock);
// From now on it keeps all others away.
void note_exclusive_lock();

void request_locked_work();
void start_locked_work();
#else
inline void count_work(Work, uint64) {}
inline LWLock* note_slice_lock(LWLock* lock) { return lock; }
inline void note_exclusive_lock() {}
#endif

}  // namespace streamfilter::pg
