#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/tablespace.h"
}

#include <fcntl.h>
#include <sys/mman.h>

#include "pg/transaction/own_changes_memory.hpp"

namespace streamfilter::pg {
namespace {

// Smaller pieces are not worth a file.
constexpr Size kLeastFile = 64 * 1024;

struct Mapping {
  Mapping* next;
  void* memory;
  Size bytes;
};

struct OwnMemory {
  Size bytes = 0;   // of the backend's own memory
  Size mapped = 0;  // of files
  Mapping* mappings = nullptr;
  bool registered = false;  // for the end of the context
} own;

void forget_all(void*) {
  release_log_memory();
  own = OwnMemory();
}

void register_end() {
  if (own.registered) return;
  auto* callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(TopTransactionContext, sizeof(MemoryContextCallback)));
  callback->func = forget_all;
  MemoryContextRegisterResetCallback(TopTransactionContext, callback);
  own.registered = true;
}

[[noreturn]] void raise_no_file(Size bytes) {
  ereport(ERROR, errcode_for_file_access(),
          errmsg("could not make a temporary file of %zu bytes for the keys of a transaction: %m",
                 bytes),
          errhint("Commit more often, or raise work_mem."));
}

void check_limit(Size bytes) {
  if (temp_file_limit >= 0 && own.mapped + bytes > static_cast<Size>(temp_file_limit) * 1024)
    ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
            errmsg("temporary file size exceeds temp_file_limit (%dkB)", temp_file_limit),
            errdetail("The keys of a transaction take files beyond work_mem."),
            errhint("Commit more often, or raise work_mem."));
}

// Allocates all blocks before mapping: a page without one would crash the server.
void reserve_blocks(File file, Size bytes) {
  char last = 0;
  if (FileWrite(file, &last, 1, static_cast<off_t>(bytes - 1), WAIT_EVENT_BUFFILE_WRITE) != 1)
    raise_no_file(bytes);
  int error;
  do error = posix_fallocate(FileGetRawDesc(file), 0, static_cast<off_t>(bytes));
  while (error == EINTR);
  if (error == 0 || error == EINVAL || error == EOPNOTSUPP) return;
  errno = error;
  raise_no_file(bytes);
}

// Closes, counts and deletes the file at once. The mapping stays, even if closing raised, and ends
// with the process.
void* map_file(Size bytes) {
  auto* mapping = static_cast<Mapping*>(MemoryContextAlloc(TopTransactionContext, sizeof(Mapping)));
  check_limit(bytes);
  PrepareTempTablespaces();
  const File file = OpenTemporaryFile(/*interXact=*/false);
  reserve_blocks(file, bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, FileGetRawDesc(file), 0);
  if (memory == MAP_FAILED) raise_no_file(bytes);
  *mapping = {own.mappings, memory, bytes};
  own.mappings = mapping;
  own.mapped += bytes;
  FileClose(file);
  return memory;
}

// Asks for huge pages, because most of a random look-up in large memory goes into address
// translation. Does nothing where the system has none.
void advise_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] Size bytes) {
#ifdef MADV_HUGEPAGE
  constexpr Size kLargePage = 2 * 1024 * 1024;
  if (bytes < kLargePage) return;
  auto* first = reinterpret_cast<char*>(TYPEALIGN(kLargePage, memory));
  auto* last =
      reinterpret_cast<char*>(TYPEALIGN_DOWN(kLargePage, static_cast<char*>(memory) + bytes));
  if (last > first) madvise(first, static_cast<Size>(last - first), MADV_HUGEPAGE);
#endif
}

}  // namespace

void* allocate_for_log(Size bytes) {
  register_end();
  if (bytes >= kLeastFile && own.bytes + bytes > static_cast<Size>(work_mem) * 1024)
    return map_file(bytes);
  void* result = MemoryContextAllocExtended(TopTransactionContext, bytes, MCXT_ALLOC_HUGE);
  own.bytes += bytes;
  advise_large_pages(result, bytes);
  return result;
}

void free_for_log(void* memory, Size bytes) {
  for (Mapping** at = &own.mappings; *at != nullptr; at = &(*at)->next) {
    Mapping* mapping = *at;
    if (mapping->memory != memory) continue;
    *at = mapping->next;
    own.mapped -= bytes;
    munmap(memory, bytes);
    return pfree(mapping);
  }
  pfree(memory);
  own.bytes -= bytes;
}

void release_log_memory() {
  for (const Mapping* mapping = own.mappings; mapping != nullptr; mapping = mapping->next)
    munmap(mapping->memory, mapping->bytes);
  own.mappings = nullptr;
  own.mapped = 0;
}

}  // namespace streamfilter::pg
