#include "pg/server/postgres.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "core/filter/resize.hpp"
#include "pg/resize/copy_state.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kTries = 3;  // per slice, if too many keys come meanwhile

[[noreturn]] void raise_too_many(const char* name) {
  ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
          errmsg("keys come to filter \"%s\" faster than it is copied", name),
          errdetail("One slice got more new keys than can be noted while it is copied."),
          errhint("Call streamfilter_resize() again when fewer rows come, or use ALTER FOREIGN "
                  "TABLE ... OPTIONS (SET memory ...), for which rows wait."));
}

class Copier {
 public:
  Copier(FilterSlot* copy, FilterSlot* former, uint64 generation, const char* name)
      : copy_(copy),
        former_(former),
        generation_(generation),
        relid_(former->relation),
        name_(name),
        from_(block_of(former)->parameters),
        to_(block_of(copy)->parameters) {
    // Only slices being copied take memory.
    read_ = static_cast<Header*>(MemoryContextAllocHuge(CurrentMemoryContext, block_bytes(from_)));
    memcpy(static_cast<void*>(read_), block_of(former), sizeof(Header));
    scratch_ =
        MemoryContextAllocHuge(CurrentMemoryContext, to_.slice_bytes * scratch_slices(from_, to_));
  }

  void copy_slice(uint32 slice) {
    for (int i = 0; i < kTries; ++i)
      if (try_to_copy(slice)) return;
    raise_too_many(name_);
  }

 private:
  bool try_to_copy(uint32 slice) {
    Header* block = block_of(copy_);
    begin_slice(copy_, slice);
    wait_for_applying(former_, [] { pause(1, wait_event(Wait::resize)); });
    format_slice(block, slice);
    const SliceRange sources = sources_of(from_, to_, slice);
    read(sources);
    stop_at(FaultPoint::resize_slice);
    Problem problem;
    if (!can_take_over(read_, sources, to_, problem)) raise(problem);
    resize_slice(block, slice, read_, scratch_);
    for (;;) {
      CHECK_FOR_INTERRUPTS();
      const Noted noted = apply_notes(copy_, slice, apply_note);
      if (noted != Noted::more) return noted == Noted::done;
    }
  }

  void read(SliceRange sources) {
    forget_below(sources.first);
    touch(sources.end);
    LockRelationOid(relid_, AccessShareLock);
    resolve_removals(relid_);
    check_unchanged(former_, generation_, name_);
    for (uint32 i = sources.first; i < sources.end; ++i)
      copy_locked_slice(former_, i, slice_at(read_, i).state);
    UnlockRelationOid(relid_, AccessShareLock);
  }

  char* bytes_of(uint32 slice) const {
    return reinterpret_cast<char*>(read_) + sizeof(Header) + slice * from_.slice_bytes;
  }

  // Makes the system provide the memory before the lock is taken.
  void touch(uint32 end) {
    for (; touched_ < end; ++touched_) {
      CHECK_FOR_INTERRUPTS();
      memset(bytes_of(touched_), 0, from_.slice_bytes);
    }
  }

  // Gives memory of finished slices back to the system, except for pages shared with others.
  void forget_below(uint32 first) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto start = reinterpret_cast<uintptr_t>(bytes_of(forgotten_)) + page - 1,
               end = reinterpret_cast<uintptr_t>(bytes_of(first));
    if (first <= forgotten_) return;
    forgotten_ = first;
    if (end / page > start / page)
      madvise(reinterpret_cast<void*>(start / page * page), (end / page - start / page) * page,
              MADV_DONTNEED);
  }

  FilterSlot *copy_, *former_;
  uint64 generation_;
  Oid relid_;
  const char* name_;
  const Parameters from_, to_;
  Header* read_;  // as in the former state
  void* scratch_;
  uint32 touched_ = 0, forgotten_ = 0;
};

}  // namespace

void raise_changed(const char* name, const char* what) {
  ereport(ERROR, errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
          errmsg("filter \"%s\" has changed while it was resized", name), errdetail("%s", what),
          errhint("Call streamfilter_resize() again."));
}

void check_unchanged(const FilterSlot* former, uint64 generation, const char* name) {
  const char* what = nullptr;
  if (former->generation != generation)
    what = "It was altered or dropped.";
  else if (pg_atomic_read_u32(&former->copy.spoiled) != 0)
    what = "It was emptied or altered, or a value was merged in.";
  if (what != nullptr) raise_changed(name, what);
}

void copy_state(FilterSlot* copy, FilterSlot* former, uint64 generation, const char* name,
                Progress* progress) {
  const Parameters& parameters = block_of(copy)->parameters;
  progress->begin("copying", parameters.memory, "bytes");
  Copier copier(copy, former, generation, name);
  for (uint32 i = 0; i < parameters.slices; ++i) {
    copier.copy_slice(i);
    progress->add_bytes(parameters.slice_bytes);
  }
}

uint64 note_bytes(const Parameters& parameters) {
  constexpr uint64 kLeast = 256 * 1024;
  return Max(parameters.memory / 16, kLeast);
}

}  // namespace streamfilter::pg
