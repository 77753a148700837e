// Shared memory beyond what is reserved at the start: a file in /dev/shm that has lost its name, as
// long as the memory of the machine and empty. The postmaster maps it, so that its bytes have the
// same address in every process; memory is given to those that a filter takes, and taken back from
// those that none does any more.
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

// Gives memory to a part of it, which is of zeros then. Takes about .2 s per GB, a piece at a time;
// `between` is called before each and may raise. Returns 0 or an errno.
int back_with_memory(char* block, uint64 size, void (*between)());

// Takes the memory back. Cannot fail; memory that the system keeps is free for the next filter
// there.
void give_back_memory(char* block, uint64 size);

// Bytes that /dev/shm has left; 0 if it does not say.
uint64 free_in_shm();

}  // namespace streamfilter::pg
