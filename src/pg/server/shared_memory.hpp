// Hash tables, and what lies in shared memory: structures, hash tables and locks.
#pragma once

extern "C" {
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
}

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

// f may remove the entry that it is called with.
template <typename Entry, typename Function>
void for_each_entry(HTAB* table, Function&& f) {
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, table);
  while (auto* entry = static_cast<Entry*>(hash_seq_search(&scan))) f(entry);
}

// Finds the structure; true: it is new, and nothing in it is set. Needs AddinShmemInitLock.
template <typename Part>
bool attach_shared(Part*& part, const char* name, Size bytes = sizeof(Part)) {
  bool found;
  part = static_cast<Part*>(ShmemInitStruct(name, bytes, &found));
  return !found;
}

// Handles items under numbered locks, all items of one lock in one go.

// Sorts up to kMax items by their numbers, stably. Few items, or numbers above kMaxNumbers, are not
// worth sorting, and keep their order.
class LockBatches {
 public:
  static constexpr uint32 kMax = 512;
  static constexpr uint32 kMaxNumbers = 128;

  // `number(i)`, below `numbers`, is the number of item i.
  template <typename NumberOf>
  LockBatches(uint32 count, uint32 numbers, NumberOf&& number) : count_(count) {
    for (uint32 i = 0; i < count; ++i) {
      number_[i] = number(i);
      order_[i] = i;
    }
    if (count > numbers && numbers <= kMaxNumbers) sort(numbers);
  }

  uint32 count() const { return count_; }
  uint32 at(uint32 i) const { return order_[i]; }
  uint32 number(uint32 i) const { return number_[order_[i]]; }

  // Has the item at position i another number than the one before?
  bool begins(uint32 i) const { return i == 0 || number(i) != number(i - 1); }

 private:
  void sort(uint32 numbers) {
    uint32 next[kMaxNumbers + 1] = {};
    for (uint32 i = 0; i < count_; ++i) ++next[number_[i] + 1];
    for (uint32 i = 1; i <= numbers; ++i) next[i] += next[i - 1];
    for (uint32 i = 0; i < count_; ++i) order_[next[number_[i]]++] = i;
  }

  uint32 count_;
  uint32 number_[kMax];
  uint32 order_[kMax];
};

}  // namespace streamfilter::pg
