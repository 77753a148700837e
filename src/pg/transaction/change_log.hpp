// What one transaction has changed in one filter: the changes in their order, and an index that
// tells the last one of every key. Lives in the memory of the backend: 16 bytes a change and 11 to
// 22 an indexed key; 16 more where the kind looks at importance or time.
#pragma once

#include "core/kind/filter_ops.hpp"

namespace streamfilter::pg {

enum class Change : uint8 {
  add,     // a new key
  repeat,  // a key that was added before, for kinds that learn from repeats
  erase,   // one key is forgotten
  reset,   // all keys are forgotten
  merge,   // a value is merged in
};

struct LogEntry {
  uint64 hash;      // of the key; merge: the address of the value
  uint32 previous;  // the last change of the same key before; of reset and merge: the last such
  uint32 change : 3;
  uint32 announced : 1;  // others see the key in the table of keys in flight
  uint32 repeated : 1;   // the next change of the key is a repeat
  uint32 owner : 27;     // announced: which of Pending::owners
};
static_assert(sizeof(LogEntry) == 16);

constexpr uint32 kNoEntry = PG_UINT32_MAX;

// Most lookups end at the first place, without a look at the log.
struct IndexPlace {
  uint32 next;  // position + 1 of the last change; 0: unused
  uint32 tag;   // of the key; its first bits are the place where it wants to be
};

// Entries lie in levels, each twice as large as the one before, so that none ever moves.
struct KeyLog {
  static constexpr int kLevels = 25;
  static constexpr uint32 kFirst = 64;  // entries of level 0

  struct Roles {
    double importance;
    int64 time;
  };

  MemoryContext memory;
  uint32 count;
  uint32 indexed;  // places of the index in use
  uint32 room;     // so many changes can come before more memory is needed
  int index_bits;  // it has 2 to that power places
  IndexPlace* index;
  uint32 last_reset;
  uint32 last_merge;
  bool has_roles;
  LogEntry* levels[kLevels];
  Roles* roles[kLevels];
};

// An empty log. Raises 53200.
void init_log(KeyLog* log, MemoryContext memory, bool has_roles);

// Makes room for one more change, so that `append` cannot fail. Raises 53200, and 54000 after 1.6
// thousand million changes.
void make_room(KeyLog* log);
inline void reserve_change(KeyLog* log) {
  if (unlikely(log->room == 0)) make_room(log);
}

// Where the index has a key, or would have it. Good for `append_change` of that key as long as no
// other change comes in between.
struct KeySpot {
  uint32 last = kNoEntry;  // the last change of the key; kNoEntry: none
  uint32 tag = 0;
  uint32 place = 0;
  int index_bits = 0;  // of the index that was looked into; 0: it is still to be looked up
};
KeySpot find_key(const KeyLog* log, uint64 hash);

// Needs reserve_change. The entry is valid until it is undone.
LogEntry* append_change(KeyLog* log, Change change, const Element& element, KeySpot spot = {});

// Takes the last change back. Cannot fail.
void undo_change(KeyLog* log);

// Adds the place of the index where the key would be to what is to be fetched; then, when that has
// come, the change that it probably leads to.
void prefetch_place(const KeyLog* log, uint64 hash, Prefetches& prefetches);
void prefetch_change(const KeyLog* log, uint64 hash, Prefetches& prefetches);

LogEntry* entry_at(const KeyLog* log, uint32 position);
Element element_at(const KeyLog* log, uint32 position);

constexpr int64 kAllSlices = -1;

// What a change `merge` merges in: a filter, or one slice of it.
struct alignas(8) MergedValue {
  int64 slice;  // the only one that follows the header; or kAllSlices

  const Header* header() const { return reinterpret_cast<const Header*>(this + 1); }
};

inline MergedValue* merged_value(const LogEntry* entry) {
  return reinterpret_cast<MergedValue*>(static_cast<uintptr_t>(entry->hash));
}

}  // namespace streamfilter::pg
