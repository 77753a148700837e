// Keys in flight: what unfinished transactions have added, for others to see, in a table in shared
// memory. It says of a key only who added it: 16 bytes an entry. Room for max_in_flight keys is
// always there; more lie in dynamic memory, which is taken when it is needed and given back when no
// key lies there any more.
#pragma once

#include "core/base/hash.hpp"
#include "core/base/prefetch_list.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// A key of a filter, 64 bits made of the hash of the key and the slot's generation. Two keys share
// one by chance in one of 1.8e19 pairs.
struct InFlightTag {
  uint64 bits;  // never 0
};
inline InFlightTag in_flight_tag(uint64 generation, uint64 hash) {
  const uint64 bits = mix64(hash ^ generation * kGoldenRatio);
  return {bits == 0 ? 1 : bits};
}

// Who added a key, and to which filter: 48 bits of a full transaction id (of the subtransaction)
// and the number of the slot.
using Owner = uint64;
Owner make_owner(const FilterSlot* slot, FullTransactionId transaction);
FullTransactionId transaction_of(Owner owner);

// What has become of a transaction (or a subtransaction). Looks up shared state and perhaps the
// commit log, so no lock may be held.
enum class XactStatus : uint8 { running, committed, aborted };
XactStatus xact_status(FullTransactionId transaction);

// A partition of the table, under one lock.
struct InFlightPartition;
InFlightPartition* partition_of(InFlightTag tag);
LWLock* lock_of(InFlightPartition* partition);

// Adds the slot where a key would be to what is to be fetched.
void prefetch_in_flight(InFlightTag tag, Prefetches& prefetches);

// May be asked without the lock: a transaction whose key is missed by that has begun to add it
// later, or has already moved it into the filter.
bool is_empty_partition(const InFlightPartition* partition);

// What follows needs the lock of the partition, exclusive to change anything.

struct InFlightEntry {
  uint64 tag;  // 0: unused
  Owner owner;
};

// The entry of the key, or the unused one where it would be. Good until the lock is released.
InFlightEntry* find_entry(InFlightPartition* partition, InFlightTag tag);

// Who has added the key; 0: nobody.
Owner owner_of(const InFlightEntry* entry);

// Adds the key, which is not there, at the entry that was found for it. `own` is how many keys the
// transaction has in the table: of the part that is always there it leaves as much for all others.
// False: there is no room left, until grow_in_flight has made some.
bool add_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag, Owner owner,
                   uint32 own);

// The same for a key of a prepared transaction: max_in_flight of them have room besides all others.
bool add_prepared_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag,
                            Owner owner);

// Makes room for a key that was refused, with dynamic memory. False: there is none left; all that
// are in the table stay there. No lock may be held. Allocates, waits for sessions that do the same,
// and raises what waiting can raise.
bool grow_in_flight(InFlightTag tag);

// Removes those of the keys that still are their owners'. Takes the locks of their partitions, one
// by one.
struct InFlightKey {
  InFlightTag tag;
  Owner owner;
};
constexpr uint32 kMaxRemoved = 512;  // at once
void remove_in_flight(const InFlightKey* keys, uint32 count);

// Gives the dynamic memory back where no key lies any more. Cheap if there is none. Takes
// directory_lock. Cannot fail.
void give_back_unused_in_flight();

// Waits until everyone who held the lock of a partition when this was called has let go of it.
void pass_all_partitions();

// How many keys of a filter are in the table.
uint64 count_in_flight(const FilterSlot* slot);

// For shared memory.
Size in_flight_bytes();
void request_in_flight();
void start_in_flight();

}  // namespace streamfilter::pg
