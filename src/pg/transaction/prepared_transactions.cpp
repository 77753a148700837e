// Lock order: directory_lock, then that of the prepared keys, then a slice's or a partition's.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "access/twophase.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/slice_access.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

struct PreparedKey {
  Owner transaction;  // the slot, and the top-level transaction
  Owner owner;        // in the table of keys in flight; 0: it is not there
  uint64 generation;  // of the slot
  bool is_new;        // not a repeat
  uint64 hash;
  double importance;
  int64 time;
};

// A transaction that has keys here.
struct PreparedTransaction {
  FullTransactionId transaction;
  uint32 keys;
};

struct PreparedKeys {
  LWLock* lock;
  uint32 count;
  uint32 transaction_count;
  PreparedTransaction* transactions;
  PreparedKey keys[FLEXIBLE_ARRAY_MEMBER];
};

constexpr char kTranche[] = "streamfilter_prepared";
PreparedKeys* prepared = nullptr;

uint32 capacity() { return max_prepared_xacts > 0 ? static_cast<uint32>(max_in_flight) : 0; }

// Those that are prepared or about to be, and those that have ended while a filter of theirs was
// being loaded: these were there when the server started.
uint32 transaction_capacity() {
  return max_prepared_xacts > 0 ? static_cast<uint32>(2 * max_prepared_xacts + MaxBackends) : 0;
}

bool is_of(const PreparedKey& key, FullTransactionId transaction) {
  return FullTransactionIdEquals(transaction_of(key.transaction), transaction);
}

FilterSlot* slot_of(const PreparedKey& key) { return &shared_state->slots[key.transaction >> 48]; }

bool is_alive(const PreparedKey& key) { return slot_of(key)->generation == key.generation; }

// Its filter is being loaded: what is brought into it now could be overwritten.
bool is_being_loaded(const PreparedKey& key) {
  return is_alive(key) && slot_of(key)->state == SlotState::building;
}

// Others do not find it in the table of keys in flight, and are told so.
bool is_hidden(const PreparedKey& key) { return key.owner == 0 && is_alive(key); }

// The place of a transaction, or the one after the last.
uint32 find_transaction(FullTransactionId transaction) {
  uint32 at = 0;
  while (at < prepared->transaction_count &&
         !FullTransactionIdEquals(prepared->transactions[at].transaction, transaction))
    ++at;
  return at;
}

// The functions below need the lock, exclusive.

bool has_room(FullTransactionId transaction, uint64 keys) {
  return keys <= capacity() - prepared->count &&
         find_transaction(transaction) < transaction_capacity();
}

// Needs room.
void store_key(FullTransactionId transaction, const PreparedKey& key) {
  const uint32 at = find_transaction(transaction);
  if (at == prepared->transaction_count) {
    prepared->transactions[at] = {transaction, 0};
    ++prepared->transaction_count;
  }
  ++prepared->transactions[at].keys;
  prepared->keys[prepared->count++] = key;
  if (is_hidden(key)) pg_atomic_fetch_add_u32(&slot_of(key)->arriving_keys, 1);
}

template <typename IsRemoved>
void remove_keys(FullTransactionId transaction, IsRemoved&& is_removed) {
  const uint32 at = find_transaction(transaction);
  if (at == prepared->transaction_count) return;
  uint32 kept = 0;
  for (uint32 i = 0; i < prepared->count; ++i) {
    const PreparedKey& key = prepared->keys[i];
    if (!is_of(key, transaction) || !is_removed(key)) {
      prepared->keys[kept++] = key;
      continue;
    }
    if (is_hidden(key)) pg_atomic_fetch_sub_u32(&slot_of(key)->arriving_keys, 1);
    --prepared->transactions[at].keys;
  }
  prepared->count = kept;
  if (prepared->transactions[at].keys == 0)
    prepared->transactions[at] = prepared->transactions[--prepared->transaction_count];
}

void apply(const PreparedKey& key) {
  FilterSlot* slot = slot_of(key);
  Header* header = block_of(slot);
  Element element;
  element.hash = key.hash;
  element.importance = key.importance;
  element.time = key.time;
  insert_new_in_slices(slot, header, element);
  // Its transaction has written a header, if there was none. Without this, all that are prepared
  // until another one commits would write an image, one after the end of the other.
  if (slot->saved.logged) pg_atomic_write_u32(&slot->saved.has_header, 1);
}

// As transaction_changes.cpp does: first all keys into their filters, then they say so, and out of
// the table of keys in flight.
void resolve(FullTransactionId transaction, bool committed) {
  stop_at(FaultPoint::resolve);
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  LWLockAcquire(prepared->lock, LW_EXCLUSIVE);
  for (uint32 i = 0; i < prepared->count; ++i) {
    const PreparedKey& key = prepared->keys[i];
    if (!is_of(key, transaction) || !is_alive(key) || is_being_loaded(key)) continue;
    if (committed)
      apply(key);
    else if (key.is_new)
      pg_atomic_fetch_add_u64(&slot_of(key)->rolled_back, 1);
  }
  for (uint32 i = 0; i < prepared->count; ++i)
    if (const PreparedKey& key = prepared->keys[i];
        is_of(key, transaction) && !is_being_loaded(key)) {
      if (committed && is_alive(key)) pg_atomic_fetch_add_u64(&slot_of(key)->applied, 1);
      const InFlightKey entry = {in_flight_tag(key.generation, key.hash), key.owner};
      remove_in_flight(&entry, 1);
    }
  remove_keys(transaction, [](const PreparedKey& key) { return !is_being_loaded(key); });
  LWLockRelease(prepared->lock);
  LWLockRelease(shared_state->directory_lock);
}

// Needs the lock, exclusive, and room.
void store_keys(const TransactionChanges* changes, FullTransactionId transaction) {
  const ChangeLog* log = &changes->log;
  ChangeReader reader(log, 0);
  for (uint32 i = 0; i < log->count; ++i) {
    const Change* change = reader.next();
    const Element element = reader.element();
    store_key(transaction,
              {make_owner(changes->slot, transaction),
               change->registered ? changes->owners[change->owner] : 0, changes->generation,
               change->is(ChangeType::add), element.hash, element.importance, element.time});
  }
}

uint32 list_transactions(FullTransactionId* list) {
  LWLockAcquire(prepared->lock, LW_SHARED);
  const uint32 count = prepared->transaction_count;
  for (uint32 i = 0; i < count; ++i) list[i] = prepared->transactions[i].transaction;
  LWLockRelease(prepared->lock);
  return count;
}

bool is_insertion(const Change* change) {
  return change->is(ChangeType::add) || change->is(ChangeType::repeat);
}

[[noreturn]] void raise_too_many() {
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("cannot PREPARE a transaction that has added so many keys to filters"),
          errdetail("Keys of prepared transactions need a place among "
                    "streamfilter.max_in_flight, now %d.",
                    max_in_flight),
          errhint("Commit in smaller parts, or raise streamfilter.max_in_flight and restart "
                  "the server."));
  pg_unreachable();
}

}  // namespace

void refuse_to_prepare_changes() {
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next)
    for (uint32 i = 0; i < changes->log.count; ++i)
      if (!is_insertion(change_at(&changes->log, i)))
        ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                errmsg("cannot PREPARE a transaction that has truncated a filter, deleted keys "
                       "from it or merged a value into it"));
}

void add_prepared() {
  if (first_changes() == nullptr) return;
  const FullTransactionId transaction = GetTopFullTransactionIdIfAny();
  uint64 count = 0;
  bool overflowed = false;
  for (const TransactionChanges* changes = first_changes(); changes != nullptr;
       changes = changes->next) {
    count += changes->log.count;
    overflowed |= changes->overflowed;
  }
  if (overflowed) raise_too_many();
  resolve_prepared();
  LWLockAcquire(prepared->lock, LW_EXCLUSIVE);
  const bool fits = has_room(transaction, count);
  if (fits)
    for (const TransactionChanges* changes = first_changes(); changes != nullptr;
         changes = changes->next)
      store_keys(changes, transaction);
  LWLockRelease(prepared->lock);
  if (!fits) raise_too_many();
}

void remove_prepared(FullTransactionId transaction) {
  LWLockAcquire(prepared->lock, LW_EXCLUSIVE);
  remove_keys(transaction, [](const PreparedKey&) { return true; });
  LWLockRelease(prepared->lock);
}

bool put_back_in_flight(FilterSlot* slot, TransactionId transaction, const Element& element) {
  const FullTransactionId next = ReadNextFullTransactionId();
  const uint32 epoch = EpochFromFullTransactionId(next);
  const FullTransactionId full = FullTransactionIdFromEpochAndXid(
      transaction > XidFromFullTransactionId(next) ? epoch - 1 : epoch, transaction);
  const Owner owner = make_owner(slot, full);
  const InFlightTag tag = in_flight_tag(slot->generation, element.hash);
  InFlightPartition* partition = partition_of(tag);
  LWLockAcquire(lock_of(partition), LW_EXCLUSIVE);
  InFlightEntry* entry = find_entry(partition, tag);
  const bool registered = owner_of(entry) != 0 || add_in_flight(partition, entry, tag, owner, 0);
  LWLockRelease(lock_of(partition));
  LWLockAcquire(prepared->lock, LW_EXCLUSIVE);
  const bool fits = has_room(full, 1);
  if (fits)
    store_key(full, {owner, registered ? owner : 0, slot->generation, true, element.hash,
                     element.importance, element.time});
  LWLockRelease(prepared->lock);
  return fits;
}

void resolve_prepared() {
  // Asked without the lock: a transaction that ends now may be found next time.
  if (prepared == nullptr || *const_cast<volatile uint32*>(&prepared->count) == 0) return;
  auto* list =
      static_cast<FullTransactionId*>(palloc(sizeof(FullTransactionId) * transaction_capacity()));
  const uint32 count = list_transactions(list);
  for (uint32 i = 0; i < count; ++i) {
    const XactStatus status = xact_status(list[i]);
    if (status != XactStatus::running) resolve(list[i], status == XactStatus::committed);
  }
  pfree(list);
}

Size prepared_bytes() {
  return add_size(add_size(offsetof(PreparedKeys, keys), mul_size(sizeof(PreparedKey), capacity())),
                  mul_size(sizeof(PreparedTransaction), transaction_capacity()));
}

void request_prepared() {
  RequestAddinShmemSpace(prepared_bytes());
  RequestNamedLWLockTranche(kTranche, 1);
}

void start_prepared() {
  bool found;
  prepared = static_cast<PreparedKeys*>(
      ShmemInitStruct("streamfilter prepared", prepared_bytes(), &found));
  if (found) return;
  prepared->lock = &GetNamedLWLockTranche(kTranche)->lock;
  prepared->count = prepared->transaction_count = 0;
  prepared->transactions = reinterpret_cast<PreparedTransaction*>(prepared->keys + capacity());
}

}  // namespace streamfilter::pg
