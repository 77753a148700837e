#include "pg/server/postgres.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <cerrno>
#include <cinttypes>
#include <initializer_list>

#include "pg/shmem/dynamic_memory.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint64 kPiece = 64 * 1024 * 1024;
constexpr int kMaxNames = 100;

// Open in this process and in those that it forks.
int file = -1;
// Is it limited only by the machine's memory? Then pages may come when they are used.
bool is_lazy = false;
DynamicMemory mapped = {};

uint64 page_size() {
  static const auto size = static_cast<uint64>(sysconf(_SC_PAGESIZE));
  return size;
}

// The number behind `name` in a system file with one name per line; otherwise `missing`.
uint64 number_in(const char* path, const char* name, uint64 missing) {
  FILE* from = fopen(path, "r");
  if (from == nullptr) return missing;
  char line[128];
  uint64 number = missing;
  const size_t length = strlen(name);
  while (number == missing && fgets(line, sizeof line, from) != nullptr)
    if (strncmp(line, name, length) != 0 || sscanf(line + length, "%" SCNu64, &number) != 1)
      number = missing;
  fclose(from);
  return number;
}

// Or of the container.
uint64 memory_of_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const uint64 machine = pages > 0 ? static_cast<uint64>(pages) * page_size() : 0;
  return Min(machine, number_in("/sys/fs/cgroup/memory.max", "", machine));
}

// Without overcommit, using a page that was not promised is an error that nobody can catch.
bool promises_at_once() { return number_in("/proc/sys/vm/overcommit_memory", "", 0) == 2; }

// An unnamed file goes with the last process that has it open. Another process may already hold a
// file of our temporary name.
int open_nameless() {
#ifdef MFD_CLOEXEC
  const int anonymous = memfd_create("streamfilter", MFD_CLOEXEC);
  is_lazy = anonymous >= 0 && !promises_at_once();
  if (anonymous >= 0) return anonymous;
#endif
  for (int i = 0; i < kMaxNames; ++i) {
    uint64 number = static_cast<uint64>(getpid()) + static_cast<uint64>(i);
    static_cast<void>(pg_strong_random(&number, sizeof number));
    char name[64];
    snprintf(name, sizeof name, "/streamfilter." UINT64_FORMAT, number);
    const int opened = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (opened >= 0) shm_unlink(name);
    if (opened >= 0 || errno != EEXIST) return opened;
  }
  return -1;
}

// Pages that filters have taken but not yet used will come later.
uint64 left_beside(uint64 taken) {
  constexpr uint64 kUnknown = PG_UINT64_MAX >> 12;
  struct stat now;
  const uint64 touched = fstat(file, &now) == 0 ? static_cast<uint64>(now.st_blocks) * 512 : 0;
  const uint64 untouched = taken > touched ? taken - touched : 0;
  const uint64 available = (number_in("/proc/meminfo", "MemAvailable:", kUnknown) +
                            number_in("/proc/meminfo", "SwapFree:", 0)) *
                           1024;
  return available > untouched ? available - untouched : 0;
}

off_t position_of(const char* block) { return static_cast<off_t>(block - mapped.base); }

}  // namespace

void start_dynamic_memory() {
  if (mapped.base != nullptr) munmap(mapped.base, mapped.size);
  if (file >= 0) {
    // A process that outlives a crash (the log collector) keeps the file, but no bytes.
    [[maybe_unused]] const int result = ftruncate(file, 0);
    close(file);
  }
  mapped = {nullptr, 0, ENOSYS};
#ifndef EXEC_BACKEND
  file = open_nameless();
  void* base = MAP_FAILED;
  const uint64 size = memory_of_machine();
  if (file >= 0 && ftruncate(file, static_cast<off_t>(size)) == 0)
    base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (base != MAP_FAILED)
    mapped = {static_cast<char*>(base), size, 0};
  else
    mapped.reason = errno;
#endif
#ifdef MADV_HUGEPAGE
  if (mapped.base != nullptr) madvise(mapped.base, mapped.size, MADV_HUGEPAGE);
#endif
}

const DynamicMemory& dynamic_memory() { return mapped; }

void report_dynamic_memory() {
  if (IsUnderPostmaster || mapped.base != nullptr) return;
  errno = mapped.reason;
  ereport(LOG, errmsg("filters have no dynamic memory: %m"),
          errdetail("They can take what streamfilter.shared_memory reserves, and no more."));
}

uint64 whole_pages(uint64 size) { return TYPEALIGN64(page_size(), size); }

int back_with_memory(char* block, uint64 size, uint64 taken, void (*between)()) {
  if (is_lazy) return left_beside(taken) >= size ? 0 : ENOMEM;
  for (uint64 done = 0; done < size;) {
    between();
    const uint64 piece = Min(kPiece, size - done);
    const int error = posix_fallocate(file, position_of(block + done), static_cast<off_t>(piece));
    if (error == EINTR) continue;  // by a signal, which `between` handles
    if (error != 0) return error;
    done += piece;
  }
  return 0;
}

void give_back_memory(char* block, uint64 size) {
#ifdef FALLOC_FL_PUNCH_HOLE
  while (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, position_of(block),
                   static_cast<off_t>(size)) != 0 &&
         errno == EINTR)
    ;
#endif
}

bool fill_memory(char* to, const char* from, uint64 size) {
  return pwrite(file, from, size, position_of(to)) == static_cast<ssize_t>(size);
}

bool gives_zeroes() {
#ifdef FALLOC_FL_PUNCH_HOLE
  return true;
#else
  return false;
#endif
}

bool gives_pages_late() { return is_lazy; }

uint64 memory_left(uint64 taken) {
  if (is_lazy) return left_beside(taken);
  struct statvfs space;
  return file >= 0 && fstatvfs(file, &space) == 0
             ? static_cast<uint64>(space.f_bavail) * space.f_frsize
             : 0;
}

// ---- regions ------------------------------------------------------------------------------------

namespace {

// The gap behind a piece, or before the first one.
struct Gap {
  Place* before;
  Place* after;
  char* start;
  uint64 size;
};

Gap gap_behind(const Region* region, Place* before) {
  Place* after = before != nullptr ? before->after : region->first;
  char* start = before != nullptr ? before->start + before->size : region->base;
  const char* end = after != nullptr ? after->start : region->base + region->size;
  return {before, after, start, static_cast<uint64>(end - start)};
}

// The full part at the base may have grown.
void skip_full(Region* region) {
  for (;;) {
    const Gap gap = gap_behind(region, region->full_until);
    if (gap.size > 0 || gap.after == nullptr) return;
    region->full_until = gap.after;
  }
}

// Makes its neighbours point at the place.
void enlist(Region* region, Place* place) {
  (place->before != nullptr ? place->before->after : region->first) = place;
  if (place->after != nullptr) place->after->before = place;
}

}  // namespace

bool take_place(Region* region, Place* place, uint64 size) {
  size = TYPEALIGN64(region->unit, size);
  Gap gap = gap_behind(region, region->full_until);
  while (gap.size < size && gap.after != nullptr) gap = gap_behind(region, gap.after);
  if (gap.size < size) return false;
  *place = {gap.start, size, gap.start >= region->new_from, gap.before, gap.after};
  region->new_from = Max(region->new_from, gap.start + size);
  enlist(region, place);
  region->in_use += size;
  skip_full(region);
  return true;
}

void free_place(Region* region, Place* place) {
  (place->before != nullptr ? place->before->after : region->first) = place->after;
  if (place->after != nullptr) place->after->before = place->before;
  if (region->full_until != nullptr && place->start <= region->full_until->start)
    region->full_until = place->before;
  region->in_use -= place->size;
  *place = {};
}

void shrink_place(Region* region, Place* place, uint64 size) {
  size = TYPEALIGN64(region->unit, size);
  region->in_use -= place->size - size;
  place->size = size;
  if (region->full_until != nullptr && place->start < region->full_until->start)
    region->full_until = place;
}

void exchange_places(Region* of_one, Place* one, Region* of_other, Place* other) {
  const auto now = [one, other](Place* was) {
    return was == one ? other : was == other ? one : was;
  };
  const Place former = *one;
  *one = *other;
  *other = former;
  of_one->full_until = now(of_one->full_until);
  if (of_other != of_one) of_other->full_until = now(of_other->full_until);
  for (Place* place : {one, other}) {
    place->before = now(place->before);
    place->after = now(place->after);
  }
  enlist(of_other, one);
  enlist(of_one, other);
}

uint64 largest_gap(const Region* region) {
  uint64 largest = 0;
  Gap gap = gap_behind(region, region->full_until);
  for (; gap.after != nullptr; gap = gap_behind(region, gap.after))
    largest = Max(largest, gap.size);
  return Max(largest, gap.size);
}

}  // namespace streamfilter::pg
