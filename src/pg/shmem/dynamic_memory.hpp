// Shared memory beyond what is reserved at the start: an anonymous file, as long as the memory of
// the machine and empty. The postmaster maps it, so that its bytes have the same address in every
// process. What a filter takes gets its pages when they are used; they are taken back when none has
// it any more. Without memfd_create() it is a file in /dev/shm that has lost its name, whose size
// has a limit of its own: there pages are given before they are used, as also where the system
// promises no more memory than it has.
#pragma once

namespace streamfilter::pg {

struct DynamicMemory {
  char* base;   // page aligned; nullptr: there is none
  uint64 size;  // of the addresses, in bytes
  int reason;   // errno, if there is none
};

// By the postmaster, or a server of one process, at its start and after each crash.
void start_dynamic_memory();
const DynamicMemory& dynamic_memory();

// Says in the log why there is none.
void report_dynamic_memory();

// A size in whole pages.
uint64 whole_pages(uint64 size);

// Makes sure that a part of it can be used. Where pages are given at once that takes about .2 s per
// GB, a piece at a time; `between` is called before each and may raise. `taken`: bytes that filters
// have of it, beside these. Returns 0 or an errno.
int back_with_memory(char* block, uint64 size, uint64 taken, void (*between)());

// Takes the memory back. Cannot fail; memory that the system keeps is free for the next filter
// there.
void give_back_memory(char* block, uint64 size);

// Copies bytes to memory that nobody has used yet: the system need not clear its pages before.
// False: it did not.
bool fill_memory(char* to, const char* from, uint64 size);

// Is all of it that filters do not have of zeroes?
bool gives_zeroes();

// Do its pages come when they are used?
bool gives_pages_late();

// Bytes that the system has left, where filters have `taken` so many.
uint64 memory_left(uint64 taken);

}  // namespace streamfilter::pg
