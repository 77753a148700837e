// Hash tables, and what lies in shared memory: structures, hash tables and locks.
#pragma once

extern "C" {
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
}

#include "pg/server/compat.hpp"

namespace streamfilter::pg {

// An LWLock, held as long as the object lives. Nothing raises meanwhile.
class LockHeld {
 public:
  LockHeld(LWLock* lock, LWLockMode mode) : lock_(lock) { LWLockAcquire(lock_, mode); }
  ~LockHeld() { LWLockRelease(lock_); }
  LockHeld(const LockHeld&) = delete;
  LockHeld& operator=(const LockHeld&) = delete;

 private:
  LWLock* lock_;
};

// Entries begin with their key.
template <typename Key, typename Entry>
HASHCTL table_of() {
  HASHCTL control = {};
  control.keysize = sizeof(Key);
  control.entrysize = sizeof(Entry);
  return control;
}

template <typename Key, typename Entry = Key>
HTAB* make_hash_table(const char* name, long size, MemoryContext context = TopMemoryContext) {
  HASHCTL control = table_of<Key, Entry>();
  control.hcxt = context;
  return hash_create(name, size, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

// One in shared memory, of a fixed size; call as attach_shared.
template <typename Key, typename Entry>
HTAB* attach_hash_table(const char* name, long size) {
  HASHCTL control = table_of<Key, Entry>();
  return SF_SHMEM_INIT_HASH(name, size, &control, HASH_ELEM | HASH_BLOBS);
}

// Finds the structure; true: it is new, and nothing in it is set. Needs AddinShmemInitLock.
template <typename Part>
bool attach_shared(Part*& part, const char* name, Size bytes = sizeof(Part)) {
  bool found;
  part = static_cast<Part*>(ShmemInitStruct(name, bytes, &found));
  return !found;
}

}  // namespace streamfilter::pg
