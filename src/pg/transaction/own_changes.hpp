// What one transaction has changed in one filter: the changes in their order, and an index that
// tells the last one of every key. 16 bytes a change and 11 to 22 an indexed key, 16 more where the
// kind looks at importance or time; own_changes_memory.hpp says where.
#pragma once

#include "core/kind/kind_registry.hpp"

namespace streamfilter::pg {

enum class ChangeType : uint8 {
  add,     // a new key
  repeat,  // a key that was added before, for kinds that learn from repeats
  erase,   // one key is forgotten
  reset,   // all keys are forgotten
  merge,   // a value is merged in
};

struct Change {
  uint64 hash;      // of the key; merge: the address of the value
  uint32 previous;  // the last change of the same key before; of reset and merge: the last such
  uint32 type : 3;
  uint32 registered : 1;  // others see the key in the table of keys in flight
  uint32 repeated : 1;    // the next change of the key is a repeat
  uint32 owner : 27;      // registered: which of TransactionChanges::owners

  bool is(ChangeType wanted) const { return type == static_cast<uint32>(wanted); }
};
static_assert(sizeof(Change) == 16);

constexpr uint32 kNoChange = PG_UINT32_MAX;

// Slots lie in lines of the cache. Most lookups end in the first line, without a look at the log.
struct IndexSlot {
  uint32 next;  // position + 1 of the last change; 0: unused
  uint32 tag;   // of the key; its first bits are the line where it wants to be
};

// Entries lie in levels, each twice as large as the one before, so that none ever moves.
struct ChangeLog {
  static constexpr int kLevels = 25;
  static constexpr uint32 kFirst = 64;  // entries of level 0

  struct Roles {
    double importance;
    int64 time;
  };

  MemoryContext memory;
  uint32 count;
  uint32 indexed;  // slots of the index in use
  uint32 room;     // so many changes can come before more memory is needed
  Change* next;    // where the next one comes, as long as there is room
  Roles* next_roles;
  int index_bits;  // it has 2 to that power slots
  IndexSlot* index;
  void* index_memory;  // it lies there, at the next whole line
  uint32 last_reset;
  uint32 last_merge;
  bool has_roles;
  Change* levels[kLevels];
  Roles* roles[kLevels];
};

// An empty log. Raises 53200.
void init_log(ChangeLog* log, MemoryContext memory, bool has_roles);

// Makes room for one more change, so that `append_change` cannot fail. Raises 53200, and 54000
// after 1.6 thousand million changes.
void make_room(ChangeLog* log);
inline void reserve_change(ChangeLog* log) {
  if (unlikely(log->room == 0)) make_room(log);
}

// Where the index has a key, or would have it. Good for `append_change` of that key as long as no
// other change comes in between.
struct IndexHint {
  uint32 last = kNoChange;  // the last change of the key; kNoChange: none
  uint32 tag = 0;
  uint32 slot = 0;
  int index_bits = 0;  // of the index that was looked into; 0: it is still to be looked up
};
IndexHint find_key(const ChangeLog* log, uint64 hash);

// The same in two steps, so that the memory of many keys can be fetched in between: `guess_key`
// looks into the index only, whose memory prefetch_index gets, and `confirm_key`, after
// prefetch_change, at the change itself. Other changes may come in between.
IndexHint guess_key(const ChangeLog* log, uint64 hash);
IndexHint confirm_key(const ChangeLog* log, uint64 hash, const IndexHint& guess);

// Is a hint still good, though other changes have come?
inline bool is_good(const ChangeLog* log, const IndexHint& hint) {
  return hint.index_bits == log->index_bits && log->index[hint.slot].next == hint.last + 1;
}

// Needs reserve_change. The entry is valid until it is undone.
Change* append_change(ChangeLog* log, ChangeType type, const Element& element, IndexHint hint = {});

// Takes the last change back. Cannot fail.
void undo_change(ChangeLog* log);

// Adds the line of the index where the key would be to what is to be fetched; then, when that has
// come, the change that it probably leads to.
void prefetch_index(const ChangeLog* log, uint64 hash, Prefetches& prefetches);
void prefetch_change(const ChangeLog* log, const IndexHint& guess, Prefetches& prefetches);

Change* change_at(const ChangeLog* log, uint32 position);
Element element_at(const ChangeLog* log, uint32 position);

// Reads the changes from one on, in their order: cheaper than to ask for each by its number.
class ChangeReader {
 public:
  ChangeReader(const ChangeLog* log, uint32 start) : log_(log), position_(start) {}

  // Of changes that are there.
  Change* next() {
    if (left_ == 0) enter_level();
    --left_;
    if (roles_ != nullptr) ++roles_;
    return ++change_;
  }

  // That of the change that was read last.
  Element element() const {
    Element element;
    element.hash = change_->hash;
    if (roles_ != nullptr) {
      element.importance = roles_->importance;
      element.time = roles_->time;
    }
    return element;
  }

 private:
  void enter_level();

  const ChangeLog* log_;
  uint32 position_;  // where the next level begins, or the start
  uint32 left_ = 0;  // of this level
  // Both point before the next one.
  Change* change_ = nullptr;
  const ChangeLog::Roles* roles_ = nullptr;
};

constexpr int64 kAllSlices = -1;
constexpr int64 kInPlace = -2;  // all of them, in place of what is there

// What a change `merge` merges in: a filter, or one slice of it.
struct alignas(8) MergedValue {
  int64 slice;  // the only one that follows the header; or kAllSlices, kInPlace

  const Header* header() const { return reinterpret_cast<const Header*>(this + 1); }
};

inline MergedValue* merged_value(const Change* change) {
  return reinterpret_cast<MergedValue*>(static_cast<uintptr_t>(change->hash));
}

}  // namespace streamfilter::pg
