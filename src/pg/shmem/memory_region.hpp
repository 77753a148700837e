// Where blocks lie in a region of memory: first fit among the gaps between them.
#pragma once

namespace streamfilter::pg {

// A piece that is in use. Lies in shared memory, which has one address in every process.
struct Place {
  char* start;  // nullptr: unused
  uint64 size;  // of whole units
  bool is_new;  // nobody has had any of it before
  Place *before, *after;
};

struct Region {
  char* base;
  uint64 size;
  uint64 unit;        // a power of two
  uint64 in_use;      // bytes
  Place* first;       // in the order of addresses
  char* new_from;     // from here on nobody has had anything
  Place* full_until;  // nothing is free before its end, so that most searches begin there
};

// The caller holds a lock of the region in all of these but the last.
bool take_place(Region* region, Place* place, uint64 size);  // false: there is no room
void free_place(Region* region, Place* place);
void shrink_place(Region* region, Place* place, uint64 size);
void exchange_places(Region* of_one, Place* one, Region* of_other, Place* other);
uint64 largest_gap(const Region* region);

inline bool is_within(const Region& region, const void* start) {
  return start >= region.base && start < region.base + region.size;
}

}  // namespace streamfilter::pg
