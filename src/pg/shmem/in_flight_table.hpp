// Keys in flight: a table in shared memory of keys that unfinished transactions have added, for
// others to see. An entry says only who added the key, and takes 16 bytes. max_in_flight keys
// always have room; more take dynamic memory, which is given back when no key is in it.
#pragma once

#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

// A filter's key: 64 bits made of the key's hash and the slot's generation. Two keys share one by
// chance in one of 1.8e19 pairs.
struct InFlightTag {
  uint64 bits;  // never 0
};
inline InFlightTag in_flight_tag(uint64 generation, uint64 hash) {
  return {Max(mix64(hash ^ generation * kGoldenRatio), uint64{1})};
}

// Gives the tag of a key that an unfinished transaction forgets: no other key's.
constexpr uint64 erasure_hash(uint64 hash) { return hash ^ 0x9e6c63d0676a9a99; }

// Who added a key, and to which filter: 48 bits of the full id of the (sub)transaction, and the
// slot's number.
using Owner = uint64;
Owner make_owner(const FilterSlot* slot, FullTransactionId transaction);
FullTransactionId transaction_of(Owner owner);

// State of a (sub)transaction. Reads shared state and perhaps the commit log, so the caller holds
// no lock.
enum class XactStatus : uint8 { running, committed, aborted };
XactStatus xact_status(FullTransactionId transaction);

// A partition of the table, under one lock.
struct InFlightPartition;
InFlightPartition* partition_of(InFlightTag tag);
LWLock* lock_of(InFlightPartition* partition);

// Adds the slot where a key would be to the prefetches.
void prefetch_in_flight(InFlightTag tag, Prefetches& prefetches);

// May be read without the lock: if that misses a key, its transaction began to add it later, or has
// already moved it into the filter.
bool is_empty_partition(const InFlightPartition* partition);

// The functions below need the partition's lock, exclusive for changes.

struct InFlightEntry {
  uint64 tag;  // 0: unused
  Owner owner;
};

// The entry of the key, or the unused one where it would be. Valid until the lock is released.
InFlightEntry* find_entry(InFlightPartition* partition, InFlightTag tag);

// Who has added the key; 0: nobody.
Owner owner_of_entry(const InFlightEntry* entry);

// Adds a key that is not there, at the entry found for it. `own` is the number of the transaction's
// keys in the table: of the reserved part it leaves as much for all others. False: there is no room
// until grow_in_flight makes some.
bool add_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag, Owner owner,
                   uint32 own);

// Adds a key of a prepared transaction: there is room for max_in_flight of these besides all
// others.
bool add_prepared_in_flight(InFlightPartition* partition, InFlightEntry* entry, InFlightTag tag,
                            Owner owner);

// Makes room for a refused key in dynamic memory. False: there is none left, and the table stays as
// it is. The caller holds no lock. Allocates, waits for sessions that do the same, and raises what
// waiting can.
bool grow_in_flight(InFlightTag tag);

// Removes keys that still belong to these owners. Takes the locks of their partitions, one by one.
struct InFlightKey {
  InFlightTag tag;
  Owner owner;
};
constexpr uint32 kMaxRemoved = 512;  // at once
void remove_in_flight(const InFlightKey* keys, uint32 count);

// Gives dynamic memory without keys back. Cheap if there is none. Takes directory_lock. Cannot
// fail.
void give_back_unused_in_flight();

// Waits until every current holder of a partition's lock has released it.
void pass_all_partitions();

// Number of a filter's keys in the table.
uint64 count_in_flight(const FilterSlot* slot);

// For shared memory.
void request_in_flight();
void start_in_flight();

}  // namespace streamfilter::pg
