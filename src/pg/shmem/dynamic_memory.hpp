// Blocks of filters lie in two regions: the arena, which streamfilter.shared_memory reserves at the
// start, and dynamic memory, an empty anonymous file as long as the machine's memory. The
// postmaster maps it, so its bytes have the same address in every process. Without memfd_create()
// it is an unlinked file in /dev/shm, whose size is limited.
//
// A place in a region is a matter of pointers, under directory_lock. Pages behind it take time, and
// are never waited for under that lock:
//
// - taken: the place is somebody's. Now back_with_memory allocates its pages, since a use that
//   finds none is an error that nobody can catch. Where pages come when they are used, it only
//   looks whether the system has so many.
// - emptied: nobody uses the bytes, but they still have their pages. The place stays taken, and
//   counts against streamfilter.dynamic_memory.
// - free, after give_back_memory: a new place in dynamic memory is of zeroes (gives_zeroes), one in
//   the arena only if it was never used (Place::is_new).
#pragma once

namespace streamfilter::pg {

struct DynamicMemory {
  char* base;   // page aligned; nullptr: there is none
  uint64 size;  // address space in bytes
  int reason;   // errno, if there is none
};

// Called by the postmaster, or a single-user server, at its start and after each crash.
void start_dynamic_memory();
const DynamicMemory& dynamic_memory();

// Writes to the log why there is none.
void report_dynamic_memory();

// Rounds a size up to whole pages.
uint64 whole_pages(uint64 size);

// Makes a part usable. Where pages are allocated before use, that takes about .2 s per GB, a piece
// at a time; `between` is called before each piece and may raise. `taken`: bytes that filters have
// besides. Returns 0 or an errno.
int back_with_memory(char* block, uint64 size, uint64 taken, void (*between)());

// Gives the memory back to the system. Cannot fail: memory that the system keeps is free for the
// next filter.
void give_back_memory(char* block, uint64 size);

// Copies bytes to memory that nobody has used yet: the system need not clear its pages before.
// False: it did not.
bool fill_memory(char* to, const char* from, uint64 size);

// Is all of it that filters do not have of zeroes?
bool gives_zeroes();

// Do pages come when they are used?
bool gives_pages_late();

// Bytes that the system has left, if filters have `taken` so many.
uint64 memory_left(uint64 taken);

// ---- regions ------------------------------------------------------------------------------------

// Places of blocks in a memory region: first fit among the gaps.

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
