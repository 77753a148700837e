// A hash table with linear probing, cut into parts with a lock each; within a part an entry lies
// near its home, at most 3/4 of the places are used.
#include "pg/server/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "port/pg_bitutils.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
}

#include "pg/server/lock_batches.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/in_flight_table.hpp"

namespace streamfilter::pg {

struct InFlightEntry {
  uint64 tag;  // 0: unused
  Owner owner;
};

struct InFlightPart {
  LWLock* lock;
  InFlightEntry* entries;
  uint32 used;
  char padding[PG_CACHE_LINE_SIZE - 2 * sizeof(void*) - sizeof(uint32)];
};

namespace {

constexpr char kTranche[] = "streamfilter_in_flight";
constexpr int kOwnerBits = 48;
constexpr uint32 kSmallestPart = 256;
static_assert(kMostRemoved <= Grouping::kMost);

InFlightPart* parts = nullptr;

// Set by the postmaster, before any other process is there.
uint32 part_count;   // a power of two
uint32 part_limit;   // entries that a part may hold
uint32 part_places;  // a power of two

void set_shape() {
  const uint32 wanted = static_cast<uint32>(max_in_flight);
  part_count = pg_nextpower2_32(Min(Max(wanted / kSmallestPart, 1u), 128u));
  part_limit = (wanted + part_count - 1) / part_count;
  part_places = pg_nextpower2_32(part_limit / 3 * 4 + 4);
}

uint32 part_number(InFlightTag tag) { return static_cast<uint32>(tag.bits) & (part_count - 1); }

uint32 home_of(uint64 tag) { return static_cast<uint32>(tag >> 32) & (part_places - 1); }

InFlightEntry* find(InFlightPart* part, uint64 tag) {
  const uint32 mask = part_places - 1;
  for (uint32 at = home_of(tag);; at = (at + 1) & mask) {
    InFlightEntry* entry = &part->entries[at];
    if (entry->tag == tag || entry->tag == 0) return entry;
  }
}

void remove(InFlightPart* part, InFlightEntry* entry) {
  const uint32 mask = part_places - 1;
  uint32 hole = static_cast<uint32>(entry - part->entries);
  for (uint32 at = (hole + 1) & mask; part->entries[at].tag != 0; at = (at + 1) & mask) {
    const uint32 home = home_of(part->entries[at].tag);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    part->entries[hole] = part->entries[at];
    hole = at;
  }
  part->entries[hole].tag = 0;
  --part->used;
}

}  // namespace

Owner make_owner(const FilterSlot* slot, FullTransactionId transaction) {
  return static_cast<uint64>(slot - shared_state->slots) << kOwnerBits |
         U64FromFullTransactionId(transaction);
}

FullTransactionId transaction_of(Owner owner) {
  return FullTransactionIdFromU64(owner & ((uint64{1} << kOwnerBits) - 1));
}

Fate fate_of(FullTransactionId transaction) {
  const TransactionId xid = XidFromFullTransactionId(transaction);
  if (TransactionIdIsInProgress(xid)) return Fate::running;
  // The commit log must not be truncated meanwhile.
  LWLockAcquire(XactTruncationLock, LW_SHARED);
  // Where nobody can tell any more: rather keep a repeat than lose a row.
  const bool known = !TransactionIdPrecedes(xid, SF_OLDEST_CLOG_XID);
  const bool committed = known && TransactionIdDidCommit(xid);
  LWLockRelease(XactTruncationLock);
  return committed ? Fate::committed : Fate::aborted;
}

InFlightPart* part_of(InFlightTag tag) { return &parts[part_number(tag)]; }

LWLock* lock_of(InFlightPart* part) { return part->lock; }

void prefetch_in_flight(InFlightTag tag, Prefetches& prefetches) {
  prefetches.add(&part_of(tag)->entries[home_of(tag.bits)]);
}

bool is_empty_part(const InFlightPart* part) {
  const bool empty = *const_cast<const volatile uint32*>(&part->used) == 0;
  pg_read_barrier();  // what the filter holds by now is read after this
  return empty;
}

Owner find_owner(InFlightPart* part, InFlightTag tag) {
  const InFlightEntry* entry = find(part, tag.bits);
  return entry->tag == 0 ? 0 : entry->owner;
}

bool add_in_flight(InFlightPart* part, InFlightTag tag, Owner owner, uint32 own) {
  // The part stands for the whole table. Leaving as much as it takes, a large transaction cannot
  // crowd out the small ones.
  if (part->used >= part_limit || own / part_count > part_limit - part->used) return false;
  InFlightEntry* entry = find(part, tag.bits);
  entry->tag = tag.bits;
  entry->owner = owner;
  ++part->used;
  return true;
}

void take_over(InFlightPart* part, InFlightTag tag, Owner owner) {
  find(part, tag.bits)->owner = owner;
}

void remove_in_flight(const InFlightKey* keys, uint32 count) {
  const Grouping group(count, part_count, [=](uint32 i) { return part_number(keys[i].tag); });
  Prefetches prefetches;
  for (uint32 i = 0; i < count; ++i) prefetch_in_flight(keys[group.at(i)].tag, prefetches);
  prefetches.start();
  InFlightPart* part = nullptr;
  for (uint32 i = 0; i < count; ++i) {
    if (group.begins(i)) {
      if (part != nullptr) LWLockRelease(part->lock);
      part = &parts[group.number(i)];
      LWLockAcquire(part->lock, LW_EXCLUSIVE);
    }
    const InFlightKey& key = keys[group.at(i)];
    InFlightEntry* entry = find(part, key.tag.bits);
    if (entry->tag != 0 && entry->owner == key.owner) remove(part, entry);
  }
  if (part != nullptr) LWLockRelease(part->lock);
}

void pass_all_parts() {
  for (uint32 i = 0; i < part_count; ++i) {
    LWLockAcquire(parts[i].lock, LW_EXCLUSIVE);
    LWLockRelease(parts[i].lock);
  }
}

uint64 count_in_flight(const FilterSlot* slot) {
  const uint64 number = static_cast<uint64>(slot - shared_state->slots);
  uint64 count = 0;
  for (uint32 i = 0; i < part_count; ++i) {
    if (is_empty_part(&parts[i])) continue;
    LWLockAcquire(parts[i].lock, LW_SHARED);
    for (uint32 at = 0; at < part_places; ++at) {
      const InFlightEntry* entry = &parts[i].entries[at];
      count += entry->tag != 0 && entry->owner >> kOwnerBits == number;
    }
    LWLockRelease(parts[i].lock);
  }
  return count;
}

Size in_flight_bytes() {
  return add_size(mul_size(sizeof(InFlightPart), part_count + 1),
                  mul_size(mul_size(sizeof(InFlightEntry), part_places), part_count));
}

void request_in_flight() {
  set_shape();
  RequestAddinShmemSpace(in_flight_bytes());
  RequestNamedLWLockTranche(kTranche, static_cast<int>(part_count));
}

void start_in_flight() {
  bool found;
  char* start =
      static_cast<char*>(ShmemInitStruct("streamfilter in flight", in_flight_bytes(), &found));
  parts = reinterpret_cast<InFlightPart*>(CACHELINEALIGN(start));
  if (found) return;
  memset(start, 0, in_flight_bytes());
  auto* entries = reinterpret_cast<InFlightEntry*>(parts + part_count);
  LWLockPadded* locks = GetNamedLWLockTranche(kTranche);
  for (uint32 i = 0; i < part_count; ++i) {
    parts[i].lock = &locks[i].lock;
    parts[i].entries = entries + static_cast<Size>(i) * part_places;
  }
}

}  // namespace streamfilter::pg
