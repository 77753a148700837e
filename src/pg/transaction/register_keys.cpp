// Enters the keys of a transaction that had a filter for itself into the table of keys in flight,
// so that others wait only for these keys.
#include "pg/server/postgres.hpp"

extern "C" {
#include "miscadmin.h"
}

#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

// 0 if not known. Ids of subtransactions between the outermost and the current one are those noted
// with their keys.
Owner owner_of(const TransactionChanges* changes, const Savepoint* savepoint) {
  if (savepoint->owner != kNoChange) return changes->owners[savepoint->owner];
  if (savepoint->level == 1) return make_owner(changes->slot, GetTopFullTransactionId());
  if (savepoint->subtransaction == GetCurrentSubTransactionId())
    return make_owner(changes->slot, GetCurrentFullTransactionId());
  return 0;
}

// The savepoints, outermost first.
struct Savepoints {
  Savepoint** at;
  uint32 count;
};

Savepoints savepoints_of(const TransactionChanges* changes) {
  Savepoints all = {nullptr, 0};
  for (const Savepoint* at = changes->savepoints; at != nullptr; at = at->below) ++all.count;
  all.at = static_cast<Savepoint**>(palloc(sizeof(Savepoint*) * Max(all.count, 1u)));
  uint32 i = all.count;
  for (Savepoint* at = changes->savepoints; at != nullptr; at = at->below) all.at[--i] = at;
  return all;
}

// Gives each savepoint its owner, in order. No key may be registered. False if an owner is not
// known.
bool renew_owners(TransactionChanges* changes, const Savepoints& savepoints) {
  const uint32 capacity = Max(savepoints.count, uint32{4});
  auto* owners = static_cast<Owner*>(
      MemoryContextAlloc(TopTransactionContext, sizeof(Owner) * static_cast<Size>(capacity)));
  for (uint32 i = 0; i < savepoints.count; ++i)
    if ((owners[i] = owner_of(changes, savepoints.at[i])) == 0) return false;
  pfree(changes->owners);
  changes->owners = owners;
  changes->owner_capacity = capacity;
  changes->owner_count = savepoints.count;
  for (uint32 i = 0; i < savepoints.count; ++i) savepoints.at[i]->owner = i;
  return true;
}

// False if there is no room.
bool register_key(TransactionChanges* changes, Change* change, uint32 owner) {
  const InFlightTag tag = in_flight_tag(changes->generation, change->hash);
  InFlightPartition* partition = partition_of(tag);
  for (;;) {
    LWLockAcquire(lock_of(partition), LW_EXCLUSIVE);
    InFlightEntry* entry = find_entry(partition, tag);
    const Owner there = owner_of(entry);
    // A key that was erased and added again is there already.
    const bool own = there != 0 && TransactionIdIsCurrentTransactionId(
                                       XidFromFullTransactionId(transaction_of(there)));
    bool added = false;
    if (there == 0)
      added = add_in_flight(partition, entry, tag, changes->owners[owner], changes->registered);
    // of an ended transaction: otherwise this transaction would have waited for it
    else if (!own) {
      entry->owner = changes->owners[owner];
      added = true;
    }
    LWLockRelease(lock_of(partition));
    if (added) {
      change->registered = 1;
      change->owner = owner;
      ++changes->registered;
      --changes->unregistered;
    }
    if (added || own) return true;
    if (!grow_in_flight(tag)) return false;
  }
}

// Registers the keys of one savepoint.
bool register_keys(TransactionChanges* changes, const Savepoint* savepoint, uint32 end) {
  ChangeReader reader(&changes->log, savepoint->start);
  for (uint32 i = savepoint->start; i < end; ++i) {
    Change* change = reader.next();
    if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
    if (change->is(ChangeType::add) && !register_key(changes, change, savepoint->owner))
      return false;
  }
  return true;
}

// A key that was added more than once belongs to the savepoint that added it first: it stays when
// the others roll back.
bool register_keys(TransactionChanges* changes, const Savepoints& savepoints) {
  for (uint32 i = 0; i < savepoints.count; ++i) {
    const bool is_last = i + 1 == savepoints.count;
    const uint32 end = is_last ? changes->log.count : savepoints.at[i + 1]->start;
    if (!register_keys(changes, savepoints.at[i], end)) return false;
  }
  return true;
}

}  // namespace

bool register_all_keys(TransactionChanges* changes) {
  withdraw_registrations(changes);  // also registrations of an attempt that an error has ended
  const Savepoints savepoints = savepoints_of(changes);
  const bool done = renew_owners(changes, savepoints) && register_keys(changes, savepoints);
  pfree(savepoints.at);
  if (!done)
    withdraw_registrations(changes);
  else
    publish_count(changes);
  return done;
}

}  // namespace streamfilter::pg
