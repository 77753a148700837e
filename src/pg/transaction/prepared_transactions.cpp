// Lock order: directory_lock, then the lock of prepared keys, then a slice's or a partition's.
//
// When a transaction has ended, one session resolves it. That one formats slices and brings keys in
// under none of the first two locks, and a session waits for it only where it needs what the
// transaction has done.
//
// Keys lie in parts: max_in_flight places that always exist, and more in dynamic memory, taken when
// needed and given back when empty.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/twophase.h"
}

#include <utility>

#include "pg/server/fault_points.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint32 kNone = PG_UINT32_MAX;
constexpr uint32 kLine = 64;  // bytes that a key is counted for

// A key's place is the number of its chunk, then its number in the chunk.
constexpr int kPartBits = 5, kPlaceBits = 32 - kPartBits;
constexpr uint32 kMaxChunks = 16;
constexpr uint32 kMaxPlaces = uint32{1} << kPlaceBits;  // of a chunk

struct PreparedKey {
  Owner transaction;  // slot and top-level transaction
  Owner owner;        // in the table of keys in flight; 0: not there
  uint64 generation;  // of the slot
  uint64 hash;
  double importance;
  int64 time;
  uint32 next;  // of the same transaction; or in the chain of unused places
  ChangeType change;
  bool done;  // applied, or forgotten
};

// A transaction with keys here. It never moves.
struct PreparedTransaction {
  FullTransactionId transaction = InvalidFullTransactionId;  // invalid: unused place
  uint32 first = kNone, last = kNone;                        // its keys, in order
  uint32 next = kNone;      // in the same bucket; or in the chain of unused places
  bool resolving = false;   // has ended, and a session is at work on its keys
  bool removes = false;     // has other changes than keys
  bool several = false;     // changes several filters
  Oid filter = InvalidOid;  // changes this one
};

struct KeyChunk {
  PreparedKey* keys = nullptr;  // nullptr: no chunk
  uint32 capacity = 0;
  uint32 count = 0;
  uint32 used = 0;             // places from here on were never used
  uint32 unused_keys = kNone;  // used before, as a chain
};

struct PreparedKeys {
  LWLock* lock;
  ConditionVariable ended;  // a session has done its work on a transaction that it resolves
  uint32 count;
  uint32 removals;  // changes other than keys
  uint32 capacity;  // of all parts
  uint32 unused_transactions;
  // Sized when the server starts: as many buckets as transactions.
  uint32* buckets;  // the first transaction of each
  PreparedTransaction* transactions;
  KeyChunk chunks[kMaxChunks];  // the first always exists
  PreparedKey keys[FLEXIBLE_ARRAY_MEMBER];
};

constexpr char kTranche[] = "streamfilter_prepared";
PreparedKeys* prepared = nullptr;

uint32 capacity() { return max_prepared_xacts > 0 ? static_cast<uint32>(max_in_flight) : 0; }

// Prepared transactions, transactions about to be prepared, and those that have ended while one of
// their filters was being loaded: these existed when the server started.
uint32 transaction_capacity() {
  return max_prepared_xacts > 0 ? static_cast<uint32>(2 * max_prepared_xacts + MaxBackends) : 0;
}

FilterSlot* slot_of(const PreparedKey& key) { return &shared_state->slots[key.transaction >> 48]; }

bool is_of_live_slot(const PreparedKey& key) { return slot_of(key)->generation == key.generation; }

bool is_key(const PreparedKey& key) { return key.change <= ChangeType::repeat; }

// Such a key is not in the table of keys in flight; other sessions are told to wait for any key.
bool is_hidden(const PreparedKey& key) {
  return is_key(key) && key.owner == 0 && is_of_live_slot(key);
}

// Until the transaction ends, no other session uses the filter.
void count_removal(const PreparedKey& key, int32 by) {
  if (is_key(key)) return;
  prepared->removals += static_cast<uint32>(by);
  if (is_of_live_slot(key) && key.change != ChangeType::unlogged)
    pg_atomic_fetch_add_u32(&slot_of(key)->unfinished.prepared_removals, by);
}

// The functions below need the lock, exclusive for changes.

PreparedKey& key_at(uint32 place) {
  return prepared->chunks[place >> kPlaceBits].keys[place & (kMaxPlaces - 1)];
}

uint32* bucket_of(FullTransactionId transaction) {
  return &prepared->buckets[XidFromFullTransactionId(transaction) % transaction_capacity()];
}

// Address of the index of the transaction's place; holds kNone if there is none.
uint32* find_transaction(FullTransactionId transaction) {
  uint32* at = bucket_of(transaction);
  while (*at != kNone &&
         !FullTransactionIdEquals(prepared->transactions[*at].transaction, transaction))
    at = &prepared->transactions[*at].next;
  return at;
}

// Calls f(key) for its keys, in order.
template <typename Function>
void for_each_key(FullTransactionId transaction, Function&& f) {
  const uint32 at = *find_transaction(transaction);
  if (at == kNone) return;
  for (uint32 i = prepared->transactions[at].first; i != kNone; i = key_at(i).next) f(key_at(i));
}

bool has_room_for(FullTransactionId transaction) {
  return prepared->unused_transactions != kNone || *find_transaction(transaction) != kNone;
}

bool has_room_for(uint64 keys) { return keys <= prepared->capacity - prepared->count; }

PreparedTransaction* enter_transaction(FullTransactionId transaction) {
  uint32* at = find_transaction(transaction);
  if (*at != kNone) return &prepared->transactions[*at];
  *at = prepared->unused_transactions;
  PreparedTransaction* entered = &prepared->transactions[*at];
  prepared->unused_transactions = entered->next;
  *entered = {.transaction = transaction};
  return entered;
}

// Needs room.
uint32 take_free_key() {
  KeyChunk* chunk = prepared->chunks;
  while (chunk->count == chunk->capacity) ++chunk;
  ++chunk->count;
  ++prepared->count;
  const uint32 at = chunk->unused_keys;
  if (at == kNone)
    return static_cast<uint32>(chunk - prepared->chunks) << kPlaceBits | chunk->used++;
  chunk->unused_keys = key_at(at).next;
  return at;
}

// Needs room.
void store_key(FullTransactionId transaction, const PreparedKey& key) {
  PreparedTransaction* of = enter_transaction(transaction);
  const uint32 at = take_free_key();
  key_at(at) = key;
  key_at(at).next = kNone;
  (of->first == kNone ? of->first : key_at(of->last).next) = at;
  of->last = at;
  if (is_hidden(key)) pg_atomic_fetch_add_u32(&slot_of(key)->unfinished.arriving_keys, 1);
  count_removal(key, 1);
  of->removes |= !is_key(key);
  of->several |= OidIsValid(of->filter) && of->filter != slot_of(key)->relation;
  of->filter = slot_of(key)->relation;
}

void free_key(uint32 at) {
  PreparedKey& key = key_at(at);
  KeyChunk& chunk = prepared->chunks[at >> kPlaceBits];
  if (is_hidden(key)) pg_atomic_fetch_sub_u32(&slot_of(key)->unfinished.arriving_keys, 1);
  count_removal(key, -1);
  key.next = chunk.unused_keys;
  chunk.unused_keys = at;
  --chunk.count;
  --prepared->count;
}

// A transaction that keeps keys of a filter being loaded ends later.
void end_resolving(PreparedTransaction* of) {
  of->resolving = false;
  if (of->first != kNone) return;
  uint32* place = find_transaction(of->transaction);
  const uint32 number = *place;
  *place = of->next;
  of->transaction = InvalidFullTransactionId;
  of->next = prepared->unused_transactions;
  prepared->unused_transactions = number;
}

// The functions below take the lock, for a few keys at a time.

constexpr uint32 kStep = 256;  // keys

// nullptr: there is no such transaction, or another session resolves it. Keys behind `last`
// belong to filters that are being loaded.
PreparedTransaction* begin_resolving(FullTransactionId transaction, uint32* last) {
  const LockHeld held(prepared->lock, LW_EXCLUSIVE);
  const uint32 at = *find_transaction(transaction);
  if (at == kNone || prepared->transactions[at].resolving) return nullptr;
  PreparedTransaction* of = &prepared->transactions[at];
  of->resolving = true;
  *last = of->last;
  return of;
}

// Removes the keys that are done of a transaction that this session resolves, and the
// transaction when it has none left.
void remove_done(PreparedTransaction* of) {
  uint32 kept = kNone;  // the last one that stays
  for (bool more = true; more;) {
    const LockHeld held(prepared->lock, LW_EXCLUSIVE);
    uint32* link = kept == kNone ? &of->first : &key_at(kept).next;
    for (uint32 i = 0; *link != kNone && i < kStep; ++i) {
      const uint32 at = *link;
      if (!key_at(at).done) {
        kept = at;
        link = &key_at(at).next;
        continue;
      }
      *link = key_at(at).next;
      if (of->last == at) of->last = kept;
      free_key(at);
    }
    more = *link != kNone;
    if (!more) end_resolving(of);
  }
  ConditionVariableBroadcast(&prepared->ended);
}

// Adds a chunk. False: there are too many. Takes the lock.
bool add_part(char* start, uint32 places) {
  const LockHeld held(prepared->lock, LW_EXCLUSIVE);
  for (KeyChunk& chunk : prepared->chunks) {
    if (chunk.keys != nullptr) continue;
    chunk = {.keys = reinterpret_cast<PreparedKey*>(start), .capacity = places};
    prepared->capacity += places;
    return true;
  }
  return false;
}

// Makes room for `keys` more keys, first come, first served. The caller holds no lock.
bool make_room_for(uint64 keys) {
  const uint64 least = Max(keys, uint64{1024});
  // Read without the lock: only a first estimate.
  const uint64 wanted = Max(least, uint64{2} * *const_cast<volatile uint32*>(&prepared->capacity));
  if (least > kMaxPlaces || prepared->capacity > kNone / 4) return false;
  uint64 size;
  char* start = take_segment(Min(wanted, uint64{kMaxPlaces}) * sizeof(PreparedKey),
                             least * sizeof(PreparedKey), &size);
  if (start == nullptr) return false;
  if (add_part(start, static_cast<uint32>(Min(size / sizeof(PreparedKey), uint64{kMaxPlaces}))))
    return true;
  give_back_segment(start);
  return false;
}

// Removes an empty chunk and returns its memory; nullptr if there is none. Takes the lock.
char* remove_unused_part() {
  const LockHeld held(prepared->lock, LW_EXCLUSIVE);
  for (uint32 i = 1; i < kMaxChunks; ++i) {
    KeyChunk& chunk = prepared->chunks[i];
    if (chunk.keys == nullptr || chunk.count > 0) continue;
    prepared->capacity -= chunk.capacity;
    return reinterpret_cast<char*>(std::exchange(chunk, {}).keys);
  }
  return nullptr;
}

// The caller holds no lock.
void give_back_unused() {
  give_back_unused_in_flight();
  if (*const_cast<volatile uint32*>(&prepared->capacity) == capacity()) return;
  while (char* start = remove_unused_part()) give_back_segment(start);
}

void empty(FilterSlot* slot) {
  const uint32 phase = enter_phase(&slot->copy.applying);
  spoil_copy(slot);
  if (!renew_block(slot)) format_all_slices(slot, block_of(slot));
  leave_phase(&slot->copy.applying, phase);
  note_emptied(slot);
}

void add(const PreparedKey& key) {
  FilterSlot* slot = slot_of(key);
  Header* header = block_of(slot);
  const Element element = {key.hash, key.importance, key.time};
  const uint32 phase = enter_phase(&slot->copy.applying);
  if (FilterSlot* copy = copy_of(slot)) change_copy(copy, ChangeType::add, element);
  count_work(Work::bytes, kLine);
  insert_new_in_slices(slot, header, element);
  leave_phase(&slot->copy.applying, phase);
}

// Definitions are applied later.
void apply(const PreparedKey& key) {
  FilterSlot* slot = slot_of(key);
  switch (key.change) {
    case ChangeType::reset: empty(slot); break;
    case ChangeType::saved: slot->saved.logged = true; break;
    case ChangeType::unlogged: return note_kept(slot, false);
    case ChangeType::drop:
    case ChangeType::define: return;
    default: add(key);
  }
  // Its transaction has written a header, if there was none. Otherwise all transactions prepared
  // until another one commits would write an image, one after the other. Of an unlogged filter that
  // it emptied last it has deleted the header: the next key needs one, to be missed after a crash.
  pg_atomic_write_u32(&slot->saved.has_header,
                      slot->saved.logged || key.change != ChangeType::reset);
}

// Needs directory_lock, exclusive.
void define(const PreparedKey& key, bool committed) {
  if (!is_of_live_slot(key)) return;
  FilterSlot* slot = slot_of(key);
  if (key.change == ChangeType::define && committed)
    make_live(slot);
  else if (key.change == (committed ? ChangeType::drop : ChangeType::define))
    free_slot(slot);
}

// The slot of one key after the other, pinned.
class KeySlot {
 public:
  KeySlot() = default;
  ~KeySlot() { leave(); }
  KeySlot(const KeySlot&) = delete;
  KeySlot& operator=(const KeySlot&) = delete;

  // While it is being loaded, a key brought into the filter could be overwritten.
  enum class State : uint8 { gone, loading, ready };

  State enter(const PreparedKey& key) {
    FilterSlot* slot = slot_of(key);
    if (slot == slot_ && key.generation == generation_) return state_;
    leave();
    const LockHeld held(shared_state->directory_lock, LW_SHARED);
    state_ = !is_of_live_slot(key)                ? State::gone
             : slot->state == SlotState::building ? State::loading
                                                  : State::ready;
    if (state_ == State::ready) pin_slot(slot);
    slot_ = slot;
    generation_ = key.generation;
    return state_;
  }

 private:
  void leave() {
    if (slot_ != nullptr && state_ == State::ready) unpin_slot(slot_);
    slot_ = nullptr;
  }

  FilterSlot* slot_ = nullptr;
  uint64 generation_ = 0;
  State state_ = State::gone;
};

// Ends a transaction that this session resolves, as in transaction_changes.cpp: first brings all
// keys into their filters, then announces that, and removes them from the table of keys in flight.
class Ending {
 public:
  Ending(PreparedTransaction* of, uint32 last, bool committed)
      : of_(of), last_(last), committed_(committed) {}

  void run() {
    bring_in();
    announce();
    if (of_->removes) define_all();
  }

 private:
  template <typename Function>
  void for_each(Function&& f) {
    for (uint32 at = of_->first;; at = key_at(at).next) {
      f(key_at(at));
      if (at == last_) return;
    }
  }

  void bring_in() {
    KeySlot slot;
    for_each([&](PreparedKey& key) {
      const KeySlot::State state = slot.enter(key);
      key.done = state != KeySlot::State::loading;
      if (state != KeySlot::State::ready) return;
      stop_at(FaultPoint::resolving);
      if (committed_)
        apply(key);
      else if (key.change == ChangeType::add)
        pg_atomic_fetch_add_u64(slot_of(key)->stats.counts[RowCount::rolled_back], 1);
    });
  }

  void announce() {
    InFlightKey withdrawn[kMaxRemoved];
    uint32 count = 0;
    for_each([&](const PreparedKey& key) {
      if (!key.done) return;
      if (committed_ && is_of_live_slot(key) && key.change <= ChangeType::reset)
        pg_atomic_fetch_add_u64(&slot_of(key)->applied, 1);
      if (key.owner == 0) return;
      if (count == kMaxRemoved) {
        remove_in_flight(withdrawn, count);
        count = 0;
      }
      withdrawn[count++] = {in_flight_tag(key.generation, key.hash), key.owner};
    });
    remove_in_flight(withdrawn, count);
  }

  // Definitions come behind all keys.
  void define_all() {
    uint32 first = kNone;
    for (uint32 at = of_->first; first == kNone; at = key_at(at).next) {
      if (key_at(at).change >= ChangeType::drop) first = at;
      if (at == last_) break;
    }
    if (first == kNone) return;
    const DirectoryChange held;
    for (uint32 at = first;; at = key_at(at).next) {
      if (key_at(at).done) define(key_at(at), committed_);
      if (at == last_) break;
    }
  }

  PreparedTransaction* of_;
  uint32 last_;
  bool committed_;
};

// False: another session is about to do so.
bool resolve_prepared(FullTransactionId transaction, bool committed) {
  stop_at(FaultPoint::resolve);
  HOLD_INTERRUPTS();
  uint32 last;
  PreparedTransaction* of = begin_resolving(transaction, &last);
  if (of != nullptr) {
    Ending(of, last, committed).run();
    remove_done(of);
    give_back_unused();
  }
  RESUME_INTERRUPTS();
  return of != nullptr;
}

bool is_being_resolved(FullTransactionId transaction) {
  const LockHeld held(prepared->lock, LW_SHARED);
  const uint32 at = *find_transaction(transaction);
  return at != kNone && prepared->transactions[at].resolving;
}

void wait_until_ended(FullTransactionId transaction) {
  ConditionVariablePrepareToSleep(&prepared->ended);
  while (is_being_resolved(transaction))
    ConditionVariableSleep(&prepared->ended, wait_event(Wait::prepared));
  ConditionVariableCancelSleep();
}

// Read without the lock: a session that has locked a filter after such a transaction's end sees it.
bool has_removals() {
  return prepared != nullptr && *const_cast<volatile uint32*>(&prepared->removals) != 0;
}

// Has the transaction written an image, which no key shows?
bool has_saved(const TransactionChanges* changes) {
  return is_alive(changes) && changes->saving.replaced && changes->saving.writes_header;
}

// Needs the lock, exclusive, and room.
void store_change(FullTransactionId transaction, const SlotChange& it) {
  store_key(transaction, {make_owner(it.slot, transaction), 0, it.slot->generation, 0, 0, 0, kNone,
                          it.change, false});
}
void store_keys(const TransactionChanges* changes, FullTransactionId transaction) {
  const ChangeLog* log = &changes->log;
  const Owner by = make_owner(changes->slot, transaction);
  ChangeReader reader(log, 0);
  for (uint32 i = 0; i < log->count; ++i) {
    const Change* change = reader.next();
    if (change->is(ChangeType::withdrawn) || change->is(ChangeType::promote)) continue;
    const Element element = reader.element();
    store_key(transaction,
              {by, change->registered ? changes->owners[change->owner] : 0, changes->generation,
               element.hash, element.importance, element.time, kNone, change->what(), false});
  }
  if (has_saved(changes)) store_change(transaction, {ChangeType::saved, changes->slot});
}

// Whose transactions matter to a caller.
struct Concern {
  Oid filter;     // InvalidOid: those of all filters
  bool removals;  // only those that have emptied, replaced or dropped it
};

bool is_of(const PreparedTransaction& of, Concern concern) {
  return (of.removes || !concern.removals) &&
         (!OidIsValid(concern.filter) || of.several || of.filter == concern.filter);
}

// The transaction in place `at` or the next one that matters, and sets `at` to its place; invalid
// if there is none.
FullTransactionId transaction_at(uint32* at, Concern concern) {
  const LockHeld held(prepared->lock, LW_SHARED);
  for (; *at < transaction_capacity(); ++*at) {
    const PreparedTransaction& of = prepared->transactions[*at];
    if (FullTransactionIdIsValid(of.transaction) && is_of(of, concern)) return of.transaction;
  }
  return InvalidFullTransactionId;
}

// Read without the lock: a transaction that ends now may be found next time.
bool is_anything_prepared() {
  return prepared != nullptr && *const_cast<volatile uint32*>(&prepared->count) != 0;
}

bool is_erased(const TransactionChanges* changes, uint64 hash) {
  uint32 at = find_key(&changes->log, hash).last;
  while (at != kNoChange && !change_at(&changes->log, at)->is(ChangeType::erase))
    at = change_at(&changes->log, at)->previous;
  return at != kNoChange;
}

// An unresolved transaction that adds a key which the current one has erased; invalid if none.
FullTransactionId find_adding_what_is_erased() {
  FullTransactionId found = InvalidFullTransactionId;
  if (!is_anything_prepared()) return found;
  const LockHeld held(prepared->lock, LW_SHARED);
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next) {
    if (!changes->erases) continue;
    for (uint32 i = 0; i < transaction_capacity() && !FullTransactionIdIsValid(found); ++i) {
      const FullTransactionId other = prepared->transactions[i].transaction;
      if (!FullTransactionIdIsValid(other)) continue;
      for_each_key(other, [&](const PreparedKey& key) {
        if (is_key(key) && slot_of(key) == changes->slot && key.generation == changes->generation &&
            is_erased(changes, key.hash))
          found = other;
      });
    }
  }
  return found;
}

bool is_prepared(const Change* change) {
  return !change->is(ChangeType::erase) && !change->is(ChangeType::merge);
}

[[noreturn]] void raise_removes_keys() {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
          errmsg("cannot PREPARE a transaction that has deleted keys from a filter or merged a "
                 "value into it"),
          errhint("Do that in a transaction of its own, without PREPARE TRANSACTION."));
}

[[noreturn]] void raise_too_many() {
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("cannot PREPARE a transaction that has added so many keys to filters"),
          errdetail("Keys of prepared transactions need a place among "
                    "streamfilter.max_in_flight, now %d, or in half of "
                    "streamfilter.dynamic_memory, now %dkB.",
                    max_in_flight, dynamic_memory_kb),
          errhint("Commit in smaller parts, or raise streamfilter.dynamic_memory and reload the "
                  "configuration."));
}

}  // namespace

void refuse_to_prepare_changes() {
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next)
    for (uint32 i = 0; i < changes->log.count; ++i)
      if (!is_prepared(change_at(&changes->log, i))) raise_removes_keys();
}

// False: there are too many keys, or *full: transactions. Takes the lock.
static bool store_all(FullTransactionId transaction, uint64 count, const SlotChange* slots,
                      uint32 slot_count, bool* full) {
  const LockHeld held(prepared->lock, LW_EXCLUSIVE);
  *full = !has_room_for(transaction);
  if (*full || !has_room_for(count)) return false;
  // Persistence first, as at COMMIT: the last change says whether an unlogged filter has contents.
  const auto store_slots = [&](bool persistence) {
    for (uint32 i = 0; i < slot_count; ++i)
      if ((slots[i].change == ChangeType::unlogged) == persistence)
        store_change(transaction, slots[i]);
  };
  store_slots(true);
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next)
    store_keys(changes, transaction);
  store_slots(false);
  return true;
}

bool add_prepared(const SlotChange* slots, uint32 slot_count) {
  const FullTransactionId transaction = GetTopFullTransactionIdIfAny();
  uint64 count = slot_count;
  bool overflowed = false;
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next) {
    count += changes->log.count + has_saved(changes);
    overflowed |= changes->overflowed;
  }
  if (count == 0) return false;
  if (overflowed || transaction_capacity() == 0) raise_too_many();
  resolve_without_waiting();
  for (bool full; !store_all(transaction, count, slots, slot_count, &full);)
    if (full || !make_room_for(count)) raise_too_many();
  return true;
}

void remove_prepared(FullTransactionId transaction) {
  uint32 last;
  PreparedTransaction* of = begin_resolving(transaction, &last);
  if (of == nullptr) return;  // another session has noticed that it has ended
  for (uint32 at = of->first;; at = key_at(at).next) {
    key_at(at).done = true;
    if (at == last) break;
  }
  remove_done(of);
  give_back_unused();
}

static bool put_back(InFlightTag tag, Owner owner) {
  InFlightPartition* partition = partition_of(tag);
  const LockHeld held(lock_of(partition), LW_EXCLUSIVE);
  InFlightEntry* entry = find_entry(partition, tag);
  return owner_of_entry(entry) != 0 || add_prepared_in_flight(partition, entry, tag, owner);
}

bool put_back_in_flight(FilterSlot* slot, TransactionId transaction, const Element& element) {
  const FullTransactionId next = ReadNextFullTransactionId();
  const uint32 epoch = EpochFromFullTransactionId(next);
  const FullTransactionId full = FullTransactionIdFromEpochAndXid(
      transaction > XidFromFullTransactionId(next) ? epoch - 1 : epoch, transaction);
  const Owner owner = make_owner(slot, full);
  const InFlightTag tag = in_flight_tag(slot->generation, element.hash);
  bool registered;
  while (!(registered = put_back(tag, owner)))
    if (!grow_in_flight(tag)) break;
  const PreparedKey key = {owner,        registered ? owner : 0, slot->generation,
                           element.hash, element.importance,     element.time,
                           kNone,        ChangeType::add,        false};
  for (;;) {
    LWLockAcquire(prepared->lock, LW_EXCLUSIVE);
    const bool enters = has_room_for(full), fits = enters && has_room_for(1);
    if (fits) store_key(full, key);
    LWLockRelease(prepared->lock);
    if (fits || !enters || !make_room_for(1)) return fits;
  }
}

static void resolve_all(Concern concern, bool waits) {
  FullTransactionId transaction;
  for (uint32 at = 0;
       transaction = transaction_at(&at, concern), FullTransactionIdIsValid(transaction); ++at) {
    const XactStatus status = xact_status(transaction);
    if (status != XactStatus::running &&
        !resolve_prepared(transaction, status == XactStatus::committed) && waits)
      wait_until_ended(transaction);
  }
}

static Size prepared_bytes() {
  return add_size(add_size(offsetof(PreparedKeys, keys), mul_size(sizeof(PreparedKey), capacity())),
                  mul_size(sizeof(PreparedTransaction) + sizeof(uint32), transaction_capacity()));
}

void resolve_prepared(Oid filter) {
  if (is_anything_prepared()) resolve_all({filter, false}, true);
}

void resolve_without_waiting() {
  if (is_anything_prepared()) resolve_all({InvalidOid, false}, false);
}

void resolve_removals(Oid filter) {
  if (unlikely(has_removals())) resolve_all({filter, true}, true);
}

bool adds_what_is_erased() { return FullTransactionIdIsValid(find_adding_what_is_erased()); }

void wait_for_prepared(const CommitWait& wait) {
  for (;;) {
    const FullTransactionId other = find_adding_what_is_erased();
    if (!FullTransactionIdIsValid(other)) return;
    stop_at(FaultPoint::commit_wait);
    wait.for_lock(
        "while waiting for a prepared transaction that adds a key that this one deletes",
        [&] { XactLockTableWait(XidFromFullTransactionId(other), nullptr, nullptr, XLTW_None); });
    resolve_prepared(InvalidOid);
  }
}

void request_prepared() {
  RequestAddinShmemSpace(prepared_bytes());
  RequestNamedLWLockTranche(kTranche, 1);
}

void start_prepared() {
  if (!attach_shared(prepared, "streamfilter prepared", prepared_bytes())) return;
  prepared->lock = &GetNamedLWLockTranche(kTranche)->lock;
  ConditionVariableInit(&prepared->ended);
  prepared->count = prepared->removals = 0;
  prepared->capacity = capacity();
  prepared->unused_transactions = kNone;
  for (KeyChunk& chunk : prepared->chunks) chunk = {};
  prepared->chunks[0] = {.keys = prepared->keys, .capacity = capacity()};
  prepared->transactions = reinterpret_cast<PreparedTransaction*>(prepared->keys + capacity());
  prepared->buckets = reinterpret_cast<uint32*>(prepared->transactions + transaction_capacity());
  for (uint32 i = 0; i < transaction_capacity(); ++i) {
    prepared->buckets[i] = kNone;
    prepared->transactions[i] = {.next = prepared->unused_transactions};
    prepared->unused_transactions = i;
  }
}

}  // namespace streamfilter::pg
