#include "pg/server/postgres.hpp"

extern "C" {
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"
}

#include <fcntl.h>
#include <sys/mman.h>

#include "pg/transaction/log_memory.hpp"

namespace streamfilter::pg {
namespace {

// Smaller pieces are not worth a file.
constexpr Size kLeastFile = 64 * 1024;

struct Mapping {
  Mapping* next;
  void* memory;
  Size bytes;
  File file;
};

struct OwnMemory {
  Size bytes = 0;  // of the backend's own
  Mapping* mappings = nullptr;
  bool registered = false;  // for the end of the context
} own;

// The files are closed by now.
void unmap_all(void*) {
  for (const Mapping* mapping = own.mappings; mapping != nullptr; mapping = mapping->next)
    munmap(mapping->memory, mapping->bytes);
  own = OwnMemory();
}

void register_end(MemoryContext context) {
  if (own.registered) return;
  auto* callback = static_cast<MemoryContextCallback*>(
      MemoryContextAllocZero(context, sizeof(MemoryContextCallback)));
  callback->func = unmap_all;
  MemoryContextRegisterResetCallback(context, callback);
  own.registered = true;
}

// It lives as long as the transaction, whatever savepoint it is made in.
File open_file() {
  PrepareTempTablespaces();
  ResourceOwner current = CurrentResourceOwner;
  CurrentResourceOwner = TopTransactionResourceOwner;
  const File file = OpenTemporaryFile(/*interXact=*/false);
  CurrentResourceOwner = current;
  return file;
}

[[noreturn]] void raise_no_file(Size bytes) {
  ereport(ERROR, errcode_for_file_access(),
          errmsg("could not make a temporary file of %zu bytes for the keys of a transaction: %m",
                 bytes),
          errhint("Commit more often, or raise work_mem."));
  pg_unreachable();
}

// All its blocks are there before it is mapped: a page without one would end the server.
void reserve_blocks(File file, Size bytes) {
  char last = 0;  // written as others write temporary files, which are limited and counted
  if (FileWrite(file, &last, 1, static_cast<off_t>(bytes - 1), WAIT_EVENT_BUFFILE_WRITE) != 1)
    raise_no_file(bytes);
  int error;
  do error = posix_fallocate(FileGetRawDesc(file), 0, static_cast<off_t>(bytes));
  while (error == EINTR);
  if (error == 0 || error == EINVAL || error == EOPNOTSUPP) return;
  errno = error;
  raise_no_file(bytes);
}

void* map_file(MemoryContext context, Size bytes) {
  auto* mapping = static_cast<Mapping*>(MemoryContextAlloc(context, sizeof(Mapping)));
  const File file = open_file();
  reserve_blocks(file, bytes);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, FileGetRawDesc(file), 0);
  if (memory == MAP_FAILED) raise_no_file(bytes);
  *mapping = {own.mappings, memory, bytes, file};
  own.mappings = mapping;
  return memory;
}

// Large pages for large memory that is read at random: most of a lookup's time goes into finding
// its page. Where the system has none, nothing changes.
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

void* allocate_for_log(MemoryContext context, Size bytes) {
  register_end(context);
  if (bytes >= kLeastFile && own.bytes + bytes > static_cast<Size>(work_mem) * 1024)
    return map_file(context, bytes);
  void* result = MemoryContextAllocExtended(context, bytes, MCXT_ALLOC_HUGE);
  own.bytes += bytes;
  advise_large_pages(result, bytes);
  return result;
}

void free_for_log(void* memory, Size bytes) {
  for (Mapping** at = &own.mappings; *at != nullptr; at = &(*at)->next) {
    Mapping* mapping = *at;
    if (mapping->memory != memory) continue;
    *at = mapping->next;
    munmap(mapping->memory, mapping->bytes);
    FileClose(mapping->file);
    return pfree(mapping);
  }
  pfree(memory);
  own.bytes -= bytes;
}

void close_log_files() {
  for (const Mapping* mapping = own.mappings; mapping != nullptr; mapping = mapping->next) {
    munmap(mapping->memory, mapping->bytes);
    FileClose(mapping->file);
  }
  own.mappings = nullptr;
}

}  // namespace streamfilter::pg
