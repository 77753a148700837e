// The changes of one transaction to one filter: a log in their order, and an index of the last
// change of every key. A change takes 16 bytes and an indexed key 11 to 22, 16 more if the kind
// uses importance or time; own_changes_memory.hpp says where.
#pragma once

#include "core/kind/kind_registry.hpp"
#include "pg/shmem/change_type.hpp"

namespace streamfilter::pg {

struct Change {
  uint64 hash;  // of the key; for merge, the address of the value
  // the previous change of the same key; for reset and merge, the previous one of these
  uint32 previous;
  uint32 type : 3;        // up to ChangeType::promote
  uint32 registered : 1;  // in the table of keys in flight, so others see the key
  uint32 repeated : 1;    // the key's next change is a repeat
  uint32 owner : 27;      // if registered: index in TransactionChanges::owners

  ChangeType what() const { return static_cast<ChangeType>(type); }
  bool is(ChangeType wanted) const { return what() == wanted; }
};
static_assert(sizeof(Change) == 16);

constexpr uint32 kNoChange = PG_UINT32_MAX;

// Slots lie in cache lines. Most look-ups end in the first line, without a look at the log.
struct IndexSlot {
  uint32 next;  // position + 1 of the last change; 0: unused
  uint32 tag;   // of the key; its first bits name the home line
};

// Entries lie in levels, each twice as large as the one before, so none ever moves.
struct ChangeLog {
  static constexpr int kLevels = 25;
  static constexpr uint32 kFirst = 64;  // entries of level 0

  struct Roles {
    double importance;
    int64 time;
  };

  uint32 count;
  uint32 indexed;  // slots of the index in use
  uint32 room;     // changes that fit before more memory is needed
  Change* next;    // place of the next change, while there is room
  Roles* next_roles;
  int index_bits;  // the index has 2 to that power slots
  IndexSlot* index;
  void* index_memory;  // allocated; the index begins at its next whole line
  uint32 last_reset;
  uint32 last_merge;
  bool has_roles;
  Change* levels[kLevels];
  Roles* roles[kLevels];
};

// Makes an empty log of one that is all zeroes, in the transaction's memory. Raises 53200.
void init_log(ChangeLog* log, bool has_roles);

// Makes room for one more change, so that `append_change` cannot fail. Raises 53200, and 54000
// after 1.6 thousand million changes.
void make_room(ChangeLog* log);
inline void reserve_change(ChangeLog* log) {
  if (unlikely(log->room == 0)) make_room(log);
}

// Where the index has a key, or would have it. Valid for `append_change` of that key until another
// change.
struct IndexHint {
  uint32 last = kNoChange;  // last change of the key; kNoChange: none
  uint32 tag = 0;
  uint32 slot = 0;
  int index_bits = 0;  // of the index that was read; 0: not looked up yet
};
IndexHint find_key(const ChangeLog* log, uint64 hash);

// The look-up in two steps, so that the memory of many keys can be fetched in between: `guess_key`
// reads the index only, after prefetch_index; `confirm_key` reads the change, after
// prefetch_change. Other changes may come in between.
IndexHint guess_key(const ChangeLog* log, uint64 hash);
IndexHint confirm_key(const ChangeLog* log, uint64 hash, const IndexHint& guess);

// Is the hint still valid, though other changes have come?
inline bool is_good(const ChangeLog* log, const IndexHint& hint) {
  return hint.index_bits == log->index_bits && log->index[hint.slot].next == hint.last + 1;
}

// Needs reserve_change. The entry is valid until it is undone.
Change* append_change(ChangeLog* log, ChangeType type, const Element& element, IndexHint hint = {});

// Undoes the last change. Cannot fail.
void undo_change(ChangeLog* log);

// Takes back the change at `position`, an addition, and all later changes of its key, which must be
// repeats. What is not at the end of the log stays there, withdrawn. Cannot fail.
void withdraw_changes(ChangeLog* log, uint32 position);

// Adds the key's index line to the prefetches; then, when the line has come, the change that it
// probably leads to.
void prefetch_index(const ChangeLog* log, uint64 hash, Prefetches& prefetches);
void prefetch_change(const ChangeLog* log, const IndexHint& guess, Prefetches& prefetches);

Change* change_at(const ChangeLog* log, uint32 position);
Element element_at(const ChangeLog* log, uint32 position);

// `roles` is nullptr if the kind uses none.
inline Element element_of(const Change* change, const ChangeLog::Roles* roles) {
  Element element;
  element.hash = change->hash;
  if (roles != nullptr) {
    element.importance = roles->importance;
    element.time = roles->time;
  }
  return element;
}

// Reads changes in order from a position on: cheaper than asking for each by its number.
class ChangeReader {
 public:
  ChangeReader(const ChangeLog* log, uint32 start) : log_(log), position_(start) {}

  // Needs that there is one.
  Change* next() {
    if (left_ == 0) enter_level();
    --left_;
    if (roles_ != nullptr) ++roles_;
    return ++change_;
  }

  // Element of the change that was read last.
  Element element() const { return element_of(change_, roles_); }

 private:
  void enter_level();

  const ChangeLog* log_;
  uint32 position_;  // where the next level begins, or the start
  uint32 left_ = 0;  // in this level
  // Both point before the next change.
  Change* change_ = nullptr;
  const ChangeLog::Roles* roles_ = nullptr;
};

constexpr int64 kAllSlices = -1;

// The value of a change `merge`: a filter, or one slice of it.
struct alignas(8) MergedValue {
  int64 slice;  // the only one behind the header; or kAllSlices

  const Header* header() const { return reinterpret_cast<const Header*>(this + 1); }
};

inline MergedValue* merged_value(const Change* change) {
  return reinterpret_cast<MergedValue*>(static_cast<uintptr_t>(change->hash));
}

}  // namespace streamfilter::pg
