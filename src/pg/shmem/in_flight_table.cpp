// A hash table with linear probing, cut into partitions with a lock each; within a partition an
// entry lies near its home slot, at most 3/4 of the slots are used.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "access/twophase.h"
#include "port/pg_bitutils.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
}

#include <cmath>

#include "pg/server/lock_batches.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/in_flight_table.hpp"

namespace streamfilter::pg {

struct InFlightPartition {
  LWLock* lock;
  InFlightEntry* entries;
  uint32 used;
  char padding[PG_CACHE_LINE_SIZE - 2 * sizeof(void*) - sizeof(uint32)];
};

namespace {

constexpr char kTranche[] = "streamfilter_in_flight";
constexpr int kOwnerBits = 48;
constexpr uint32 kMinPartition = 256;
static_assert(kMaxRemoved <= LockBatches::kMax);

InFlightPartition* partitions = nullptr;

// Set by the postmaster, before any other process is there.
uint32 partition_count;  // 2 to the power of:
int partition_bits;
uint32 partition_limit;     // entries that one may hold
uint32 partition_room;      // with those of prepared transactions
uint32 partition_capacity;  // a power of two

// How many keys one partition gets at most if all get so many on average: eight standard deviations
// more.
uint32 most_of(uint32 mean) {
  return mean + static_cast<uint32>(8 * std::sqrt(static_cast<double>(mean)));
}

void set_shape() {
  const uint32 wanted = static_cast<uint32>(max_in_flight);
  partition_count = pg_nextpower2_32(Min(Max(wanted / kMinPartition, 1u), 128u));
  partition_bits = pg_leftmost_one_pos32(partition_count);
  partition_limit = (wanted + partition_count - 1) / partition_count;
  partition_room = partition_limit;
  if (max_prepared_xacts > 0) partition_room += most_of(partition_limit);
  partition_capacity = pg_nextpower2_32(partition_room / 3 * 4 + 4);
}

uint32 partition_number(InFlightTag tag) {
  return static_cast<uint32>(tag.bits) & (partition_count - 1);
}

uint32 home_of(uint64 tag) { return static_cast<uint32>(tag >> 32) & (partition_capacity - 1); }

InFlightEntry* find(InFlightPartition* partition, uint64 tag) {
  const uint32 mask = partition_capacity - 1;
  for (uint32 at = home_of(tag);; at = (at + 1) & mask) {
    InFlightEntry* entry = &partition->entries[at];
    if (entry->tag == tag || entry->tag == 0) return entry;
  }
}

void put(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag, Owner owner) {
  *entry = {tag.bits, owner};
  ++partition->used;
}

void remove(InFlightPartition* partition, InFlightEntry* entry) {
  const uint32 mask = partition_capacity - 1;
  uint32 hole = static_cast<uint32>(entry - partition->entries);
  for (uint32 at = (hole + 1) & mask; partition->entries[at].tag != 0; at = (at + 1) & mask) {
    const uint32 home = home_of(partition->entries[at].tag);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    partition->entries[hole] = partition->entries[at];
    hole = at;
  }
  partition->entries[hole].tag = 0;
  --partition->used;
}

}  // namespace

Owner make_owner(const FilterSlot* slot, FullTransactionId transaction) {
  return static_cast<uint64>(slot - shared_state->slots) << kOwnerBits |
         U64FromFullTransactionId(transaction);
}

FullTransactionId transaction_of(Owner owner) {
  return FullTransactionIdFromU64(owner & ((uint64{1} << kOwnerBits) - 1));
}

XactStatus xact_status(FullTransactionId transaction) {
  const TransactionId xid = XidFromFullTransactionId(transaction);
  if (TransactionIdIsInProgress(xid)) return XactStatus::running;
  // The commit log must not be truncated meanwhile.
  LWLockAcquire(XactTruncationLock, LW_SHARED);
  // Where nobody can tell any more: rather keep a repeat than lose a row.
  const bool known = !TransactionIdPrecedes(xid, SF_OLDEST_CLOG_XID);
  const bool committed = known && TransactionIdDidCommit(xid);
  LWLockRelease(XactTruncationLock);
  return committed ? XactStatus::committed : XactStatus::aborted;
}

InFlightPartition* partition_of(InFlightTag tag) { return &partitions[partition_number(tag)]; }

LWLock* lock_of(InFlightPartition* partition) { return partition->lock; }

void prefetch_in_flight(InFlightTag tag, Prefetches& prefetches) {
  prefetches.add(&partition_of(tag)->entries[home_of(tag.bits)]);
}

bool is_empty_partition(const InFlightPartition* partition) {
  const bool empty = *const_cast<const volatile uint32*>(&partition->used) == 0;
  pg_read_barrier();  // what the filter holds by now is read after this
  return empty;
}

InFlightEntry* find_entry(InFlightPartition* partition, InFlightTag tag) {
  return find(partition, tag.bits);
}

Owner owner_of(const InFlightEntry* entry) { return entry->tag == 0 ? 0 : entry->owner; }

bool add_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag, Owner owner,
                   uint32 own) {
  // The partition stands for the whole table. Leaving as much as it takes, a large transaction
  // cannot crowd out the small ones.
  if (partition->used >= partition_limit ||
      own >> partition_bits > partition_limit - partition->used)
    return false;
  put(partition, entry, tag, owner);
  return true;
}

bool add_prepared_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag,
                            Owner owner) {
  if (partition->used >= partition_room) return false;
  put(partition, entry, tag, owner);
  return true;
}

void remove_in_flight(const InFlightKey* keys, uint32 count) {
  const LockBatches batches(count, partition_count,
                            [=](uint32 i) { return partition_number(keys[i].tag); });
  Prefetches prefetches;
  for (uint32 i = 0; i < count; ++i) prefetch_in_flight(keys[batches.at(i)].tag, prefetches);
  prefetches.start();
  InFlightPartition* partition = nullptr;
  for (uint32 i = 0; i < count; ++i) {
    if (batches.begins(i)) {
      if (partition != nullptr) LWLockRelease(partition->lock);
      partition = &partitions[batches.number(i)];
      LWLockAcquire(partition->lock, LW_EXCLUSIVE);
    }
    const InFlightKey& key = keys[batches.at(i)];
    InFlightEntry* entry = find(partition, key.tag.bits);
    if (entry->tag != 0 && entry->owner == key.owner) remove(partition, entry);
  }
  if (partition != nullptr) LWLockRelease(partition->lock);
}

void pass_all_partitions() {
  for (uint32 i = 0; i < partition_count; ++i) {
    LWLockAcquire(partitions[i].lock, LW_EXCLUSIVE);
    LWLockRelease(partitions[i].lock);
  }
}

uint64 count_in_flight(const FilterSlot* slot) {
  const uint64 number = static_cast<uint64>(slot - shared_state->slots);
  uint64 count = 0;
  for (uint32 i = 0; i < partition_count; ++i) {
    if (is_empty_partition(&partitions[i])) continue;
    LWLockAcquire(partitions[i].lock, LW_SHARED);
    for (uint32 at = 0; at < partition_capacity; ++at) {
      const InFlightEntry* entry = &partitions[i].entries[at];
      count += entry->tag != 0 && entry->owner >> kOwnerBits == number;
    }
    LWLockRelease(partitions[i].lock);
  }
  return count;
}

Size in_flight_bytes() {
  return add_size(mul_size(sizeof(InFlightPartition), partition_count + 1),
                  mul_size(mul_size(sizeof(InFlightEntry), partition_capacity), partition_count));
}

void request_in_flight() {
  set_shape();
  RequestAddinShmemSpace(in_flight_bytes());
  RequestNamedLWLockTranche(kTranche, static_cast<int>(partition_count));
}

void start_in_flight() {
  bool found;
  char* start =
      static_cast<char*>(ShmemInitStruct("streamfilter in flight", in_flight_bytes(), &found));
  partitions = reinterpret_cast<InFlightPartition*>(CACHELINEALIGN(start));
  if (found) return;
  memset(start, 0, in_flight_bytes());
  auto* entries = reinterpret_cast<InFlightEntry*>(partitions + partition_count);
  LWLockPadded* locks = GetNamedLWLockTranche(kTranche);
  for (uint32 i = 0; i < partition_count; ++i) {
    partitions[i].lock = &locks[i].lock;
    partitions[i].entries = entries + static_cast<Size>(i) * partition_capacity;
  }
}

}  // namespace streamfilter::pg
