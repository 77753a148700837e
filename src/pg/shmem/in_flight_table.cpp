// A hash table with linear probing, cut into partitions with a lock each; within a partition an
// entry lies near its home slot, at most 3/4 of the slots are used.
//
// What does not fit lies in further tables of the same partitions under the same locks, taken from
// dynamic memory, each four times as large as the one before. A partition knows in which of them it
// has keys: while there are none, that is one number beside the count of its keys. A table counts
// the partitions that have keys in it, and is given back by the session that finds none.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/twophase.h"
}

#include "pg/server/fault_points.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/in_flight_table.hpp"

namespace streamfilter::pg {

constexpr int kMaxFurther = 12;

struct InFlightPartition {
  LWLock* lock;
  InFlightEntry* entries;
  uint32 used;     // keys, wherever they lie
  uint32 further;  // keys in further tables
  uint32 holding;  // further tables with keys, as bits
  uint32 used_of[kMaxFurther];
  char padding[PG_CACHE_LINE_SIZE - 2 * sizeof(void*) - (3 + kMaxFurther) * sizeof(uint32)];
};

namespace {

constexpr char kTranche[] = "streamfilter_in_flight";
constexpr int kOwnerBits = 48;
constexpr uint32 kMinPartition = 256;
static_assert(kMaxRemoved <= LockBatches::kMax);

InFlightPartition* partitions = nullptr;

// A closed table is unused: it is being made or given back, or does not exist.
constexpr uint32 kClosed = PG_UINT32_MAX;

struct FurtherTable {
  pg_atomic_uint32 partitions;  // partitions with keys here; or kClosed
  uint32 capacity;              // of a partition, a power of two
  InFlightEntry* entries;       // nullptr: none. Changes only while closed
};

struct FurtherTables {
  pg_atomic_uint32 count;    // number of further tables
  pg_atomic_uint32 growing;  // a session is making one
  ConditionVariable grown;
  FurtherTable tables[kMaxFurther];
  pg_atomic_uint64 keys[FLEXIBLE_ARRAY_MEMBER];  // in all partitions, by slot number
};
FurtherTables* further = nullptr;

// Set by the postmaster, before any other process is there.
uint32 partition_count;  // 2 to the power of:
int partition_bits;
uint32 partition_limit;     // entries that a partition may hold
uint32 partition_room;      // including those of prepared transactions
uint32 partition_capacity;  // a power of two

// Upper bound for the keys of one partition if all get `mean` on average: eight standard deviations
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

// A partition's part of a table.
struct Part {
  InFlightEntry* entries;
  uint32 mask;

  uint32 home_of(uint64 tag) const { return static_cast<uint32>(tag >> 32) & mask; }
};

Part fixed_part(const InFlightPartition* partition) {
  return {partition->entries, partition_capacity - 1};
}

Part further_part(const InFlightPartition* partition, int number) {
  const FurtherTable& table = further->tables[number];
  return {table.entries + static_cast<Size>(partition - partitions) * table.capacity,
          table.capacity - 1};
}

uint32 limit_of(const FurtherTable& table) { return table.capacity / 4 * 3; }

// The entry of the key, or the unused one where it would be.
InFlightEntry* find(const Part& part, uint64 tag) {
  for (uint32 at = part.home_of(tag);; at = (at + 1) & part.mask) {
    InFlightEntry* entry = &part.entries[at];
    if (entry->tag == tag || entry->tag == 0) return entry;
  }
}

void erase(const Part& part, InFlightEntry* entry) {
  uint32 hole = static_cast<uint32>(entry - part.entries);
  for (uint32 at = (hole + 1) & part.mask; part.entries[at].tag != 0; at = (at + 1) & part.mask) {
    const uint32 home = part.home_of(part.entries[at].tag);
    if (((at - home) & part.mask) < ((at - hole) & part.mask)) continue;
    part.entries[hole] = part.entries[at];
    hole = at;
  }
  part.entries[hole].tag = 0;
}

// Calls f(number) for the further tables where the partition has keys, until it returns true.
template <typename Function>
void for_each_holding(uint32 holding, Function&& f) {
  for (; holding != 0; holding &= holding - 1)
    if (f(pg_rightmost_one_pos32(holding))) return;
}

// The key's entry in a further table; nullptr if it is in none.
pg_noinline InFlightEntry* find_further(InFlightPartition* partition, uint64 tag, int* number) {
  InFlightEntry* found = nullptr;
  for_each_holding(partition->holding, [&](int i) {
    InFlightEntry* entry = find(further_part(partition, i), tag);
    if (entry->tag == 0) return false;
    found = entry;
    *number = i;
    return true;
  });
  return found;
}

// Without the lock: at worst, this fetches another address.
pg_noinline void prefetch_further(const InFlightPartition* partition, uint64 tag,
                                  Prefetches& prefetches) {
  for_each_holding(partition->holding, [&](int i) {
    const Part part = further_part(partition, i);
    prefetches.add(part.entries + part.home_of(tag));
    return false;
  });
}

pg_atomic_uint64* further_keys_of(Owner owner) { return &further->keys[owner >> kOwnerBits]; }

// Counts the partition as one with keys in the table. False: the table is closed.
bool join(FurtherTable* table) {
  uint32 joined = pg_atomic_read_u32(&table->partitions);
  while (joined != kClosed)
    if (pg_atomic_compare_exchange_u32(&table->partitions, &joined, joined + 1)) return true;
  return false;
}

bool has_room(const InFlightPartition* partition, int number) {
  FurtherTable* table = &further->tables[number];
  return pg_atomic_read_u32(&table->partitions) != kClosed &&
         partition->used_of[number] < limit_of(*table);
}

// A table with keys of the partition is not closed.
bool put_further(InFlightPartition* partition, InFlightTag tag, Owner owner) {
  if (pg_atomic_read_u32(&further->count) == 0) return false;
  for (int i = 0; i < kMaxFurther; ++i) {
    if (partition->used_of[i] == 0 && !join(&further->tables[i])) continue;
    if (partition->used_of[i] >= limit_of(further->tables[i])) continue;
    *find(further_part(partition, i), tag.bits) = {tag.bits, owner};
    ++partition->used;
    ++partition->further;
    ++partition->used_of[i];
    partition->holding |= 1u << i;
    pg_atomic_fetch_add_u64(further_keys_of(owner), 1);
    return true;
  }
  return false;
}

void remove_further(InFlightPartition* partition, InFlightEntry* entry, int number) {
  pg_atomic_fetch_sub_u64(further_keys_of(entry->owner), 1);
  erase(further_part(partition, number), entry);
  --partition->used;
  --partition->further;
  if (--partition->used_of[number] > 0) return;
  partition->holding &= ~(1u << number);
  pg_atomic_fetch_sub_u32(&further->tables[number].partitions, 1);
}

void remove(InFlightPartition* partition, const InFlightKey& key) {
  const Part part = fixed_part(partition);
  InFlightEntry* entry = find(part, key.tag.bits);
  if (entry->tag != 0) {
    if (entry->owner != key.owner) return;
    erase(part, entry);
    --partition->used;
  } else if (unlikely(partition->holding != 0)) {
    int number;
    entry = find_further(partition, key.tag.bits, &number);
    if (entry != nullptr && entry->owner == key.owner) remove_further(partition, entry, number);
  }
}

Size bytes_of_capacity(uint32 capacity) {
  return sizeof(InFlightEntry) * partition_count * static_cast<Size>(capacity);
}

// Entries per partition of the next table.
uint32 next_capacity() {
  uint32 largest = partition_capacity / 2;
  for (const FurtherTable& table : further->tables)
    if (table.entries != nullptr) largest = Max(largest, table.capacity);
  return Min(largest, uint32{1} << 26) * 4;
}

// Needs `growing`. False: there is no memory, or no place.
bool open_further() {
  for (FurtherTable& table : further->tables) {
    if (table.entries != nullptr) continue;
    uint64 size;
    char* start = take_segment(bytes_of_capacity(next_capacity()),
                               bytes_of_capacity(partition_capacity / 2), &size);
    if (start == nullptr) return false;
    table.capacity =
        static_cast<uint32>(pg_prevpower2_64(size / sizeof(InFlightEntry) / partition_count));
    table.entries = reinterpret_cast<InFlightEntry*>(start);
    pg_atomic_fetch_add_u32(&further->count, 1);
    pg_atomic_exchange_u32(&table.partitions, 0);
    return true;
  }
  return false;
}

// Has the partition got another table since the caller found no room?
bool has_grown(InFlightPartition* partition) {
  bool grown = false;
  const LockHeld held(partition->lock, LW_SHARED);
  for (int i = 0; i < kMaxFurther && !grown; ++i) grown = has_room(partition, i);
  return grown;
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
  const LockHeld held(XactTruncationLock, LW_SHARED);
  // If nobody can know any more: rather keep a repeat than lose a row.
  const bool known = !TransactionIdPrecedes(xid, SF_OLDEST_CLOG_XID);
  return known && TransactionIdDidCommit(xid) ? XactStatus::committed : XactStatus::aborted;
}

InFlightPartition* partition_of(InFlightTag tag) { return &partitions[partition_number(tag)]; }

LWLock* lock_of(InFlightPartition* partition) { return partition->lock; }

void prefetch_in_flight(InFlightTag tag, Prefetches& prefetches) {
  const InFlightPartition* partition = partition_of(tag);
  const Part part = fixed_part(partition);
  prefetches.add(part.entries + part.home_of(tag.bits));
  if (unlikely(partition->holding != 0)) prefetch_further(partition, tag.bits, prefetches);
}

bool is_empty_partition(const InFlightPartition* partition) {
  const bool empty = *const_cast<const volatile uint32*>(&partition->used) == 0;
  pg_read_barrier();  // what the filter holds is read after this
  return empty;
}

InFlightEntry* find_entry(InFlightPartition* partition, InFlightTag tag) {
  InFlightEntry* entry = find(fixed_part(partition), tag.bits);
  if (likely(entry->tag != 0 || partition->holding == 0)) return entry;
  int number;
  InFlightEntry* elsewhere = find_further(partition, tag.bits, &number);
  return elsewhere != nullptr ? elsewhere : entry;
}

Owner owner_of_entry(const InFlightEntry* entry) { return entry->tag == 0 ? 0 : entry->owner; }

bool add_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag, Owner owner,
                   uint32 own) {
  // Each partition represents the whole table. By leaving as much as it takes, a large transaction
  // cannot crowd out small ones.
  const uint32 used = partition->used - partition->further;
  if (used >= partition_limit || own >> partition_bits > partition_limit - used)
    return put_further(partition, tag, owner);
  *entry = {tag.bits, owner};
  ++partition->used;
  return true;
}

bool add_prepared_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag,
                            Owner owner) {
  if (partition->used - partition->further >= partition_room)
    return put_further(partition, tag, owner);
  *entry = {tag.bits, owner};
  ++partition->used;
  return true;
}

static void remove_one(const InFlightKey& key) {
  InFlightPartition* partition = partition_of(key.tag);
  const LockHeld held(partition->lock, LW_EXCLUSIVE);
  remove(partition, key);
}

void remove_in_flight(const InFlightKey* keys, uint32 count) {
  if (count == 1) return remove_one(keys[0]);
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
    remove(partition, keys[batches.at(i)]);
  }
  if (partition != nullptr) LWLockRelease(partition->lock);
}

bool grow_in_flight(InFlightTag tag) {
  stop_at(FaultPoint::grow);
  ConditionVariablePrepareToSleep(&further->grown);
  for (;;) {
    uint32 nobody = 0;
    if (pg_atomic_compare_exchange_u32(&further->growing, &nobody, 1)) break;
    ConditionVariableSleep(&further->grown, wait_event(Wait::grow));
  }
  ConditionVariableCancelSleep();
  // Nothing raises from here on.
  const bool grown = has_grown(partition_of(tag)) || open_further();
  pg_atomic_write_u32(&further->growing, 0);
  ConditionVariableBroadcast(&further->grown);
  return grown;
}

void give_back_unused_in_flight() {
  if (pg_atomic_read_u32(&further->count) == 0) return;
  for (FurtherTable& table : further->tables) {
    uint32 none = 0;
    if (!pg_atomic_compare_exchange_u32(&table.partitions, &none, kClosed)) continue;
    give_back_segment(reinterpret_cast<char*>(table.entries));
    pg_atomic_fetch_sub_u32(&further->count, 1);
    table.entries = nullptr;
  }
}

void pass_all_partitions() {
  for (uint32 i = 0; i < partition_count; ++i) {
    const LockHeld held(partitions[i].lock, LW_EXCLUSIVE);
  }
}

uint64 count_in_flight(const FilterSlot* slot) {
  const uint64 number = static_cast<uint64>(slot - shared_state->slots);
  uint64 count = pg_atomic_read_u64(&further->keys[number]);
  for (uint32 i = 0; i < partition_count; ++i) {
    if (is_empty_partition(&partitions[i])) continue;
    const LockHeld held(partitions[i].lock, LW_SHARED);
    for (uint32 at = 0; at < partition_capacity; ++at) {
      const InFlightEntry* entry = &partitions[i].entries[at];
      count += entry->tag != 0 && entry->owner >> kOwnerBits == number;
    }
  }
  return count;
}

static Size further_bytes() {
  return CACHELINEALIGN(offsetof(FurtherTables, keys) +
                        sizeof(pg_atomic_uint64) * static_cast<Size>(all_slots()));
}

static Size in_flight_bytes() {
  return add_size(further_bytes() + mul_size(sizeof(InFlightPartition), partition_count + 1),
                  mul_size(mul_size(sizeof(InFlightEntry), partition_capacity), partition_count));
}

void request_in_flight() {
  set_shape();
  RequestAddinShmemSpace(in_flight_bytes());
  RequestNamedLWLockTranche(kTranche, static_cast<int>(partition_count));
}

void start_in_flight() {
  char* start;
  const bool is_new = attach_shared(start, "streamfilter in flight", in_flight_bytes());
  partitions = reinterpret_cast<InFlightPartition*>(CACHELINEALIGN(start));
  auto* entries = reinterpret_cast<InFlightEntry*>(partitions + partition_count);
  further = reinterpret_cast<FurtherTables*>(entries + static_cast<Size>(partition_count) *
                                                           partition_capacity);
  if (!is_new) return;
  memset(start, 0, in_flight_bytes());
  ConditionVariableInit(&further->grown);
  for (FurtherTable& table : further->tables) pg_atomic_init_u32(&table.partitions, kClosed);
  LWLockPadded* locks = GetNamedLWLockTranche(kTranche);
  for (uint32 i = 0; i < partition_count; ++i) {
    partitions[i].lock = &locks[i].lock;
    partitions[i].entries = entries + static_cast<Size>(i) * partition_capacity;
  }
}

}  // namespace streamfilter::pg
