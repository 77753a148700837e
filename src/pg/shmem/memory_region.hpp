// Places of blocks in a memory region: first fit among the gaps.
#pragma once

namespace streamfilter::pg {

// A used piece. Lies in shared memory, which has one address in every process.
struct Place {
  char* start;  // nullptr: unused
  uint64 size;  // of whole units
  bool is_new;  // never used before
  Place *before, *after;
};

struct Region {
  char* base;
  uint64 size;
  uint64 unit;        // a power of two
  uint64 in_use;      // bytes
  Place* first;       // in the order of addresses
  char* new_from;     // memory from here on was never used
  Place* full_until;  // nothing is free before its end, so most searches begin there
};

// All but the last need the region's lock.
bool take_place(Region* region, Place* place, uint64 size);  // false: there is no room
void free_place(Region* region, Place* place);
void shrink_place(Region* region, Place* place, uint64 size);
void exchange_places(Region* of_one, Place* one, Region* of_other, Place* other);
uint64 largest_gap(const Region* region);

inline bool is_within(const Region& region, const void* start) {
  return start >= region.base && start < region.base + region.size;
}

}  // namespace streamfilter::pg
