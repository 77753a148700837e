// The directory of filters and their memory.
//
// Locking rules:
// - directory_lock protects `state`, `database`, `relation`, `server`, `owner`, `signature`,
//   `generation`, `block` and `size` of every slot, `segments` and `next_generation`. To read or
//   write them, hold it (shared or exclusive), except that `generation`, `block` and `size` of a
//   live or own slot may be read by a session that has a lock on its relation: only DDL and
//   TRUNCATE change them, and they hold AccessExclusiveLock.
// - The bytes of a block belong to the builder while the slot is `building`. Later the header is
//   only read, and each slice is read and written under its slice lock; nobody may hold two of
//   these.
// - The counters are atomics. `built` is broadcast whenever a slot leaves the state `building`.
// - While one of these locks is held, nothing is called that can raise, allocate or do I/O.
#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
}

#include <algorithm>

#include "pg/server/settings.hpp"
#include "pg/shmem/dynamic_memory.hpp"
#include "pg/shmem/filter_directory.hpp"

namespace streamfilter::pg {

SharedState* shared_state = nullptr;

namespace {

constexpr int kSliceLocks = 1024;
constexpr char kDirectoryTranche[] = "streamfilter_directory";
constexpr char kSliceTranche[] = "streamfilter_slice";

const SharedSection* sections = nullptr;
int section_count = 0;

void for_each_section(void (*SharedSection::*what)()) {
  for (int i = 0; i < section_count; ++i)
    if (sections[i].*what != nullptr) (sections[i].*what)();
}

Size directory_bytes() {
  return CACHELINEALIGN(add_size(offsetof(SharedState, slots),
                                 mul_size(sizeof(FilterSlot), static_cast<Size>(max_filters))));
}

Size arena_bytes() { return mul_size(static_cast<Size>(shared_memory_kb), 1024); }

}  // namespace

void request_shared_state(MemoryCall* call) {
  call->go_on();
  RequestAddinShmemSpace(add_size(add_size(directory_bytes(), arena_bytes()), PG_CACHE_LINE_SIZE));
  RequestNamedLWLockTranche(kDirectoryTranche, 1);
  RequestNamedLWLockTranche(kSliceTranche, kSliceLocks);
  for_each_section(&SharedSection::request);
}

void start_shared_state(MemoryCall* call) {
  call->go_on();
  shared_state = nullptr;  // of the time before a crash
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  bool found;
  SharedState* state = static_cast<SharedState*>(ShmemInitStruct(
      "streamfilter", directory_bytes() + arena_bytes() + PG_CACHE_LINE_SIZE, &found));
  if (!found) {
    memset(static_cast<void*>(state), 0, directory_bytes());
    state->directory_lock = &GetNamedLWLockTranche(kDirectoryTranche)->lock;
    state->slice_locks = GetNamedLWLockTranche(kSliceTranche);
    ConditionVariableInit(&state->built);
    state->next_generation = 1;
    state->slot_count = max_filters;
    state->arena_size = arena_bytes();
    state->arena =
        reinterpret_cast<char*>(CACHELINEALIGN(reinterpret_cast<char*>(state) + directory_bytes()));
    for (int i = 0; i < state->slot_count; ++i) reset_counters(&state->slots[i], 0);
    start_dynamic_memory();
  }
  for_each_section(&SharedSection::start);
  LWLockRelease(AddinShmemInitLock);
  shared_state = state;
  for_each_section(&SharedSection::ready);
}

namespace {

// Where blocks may lie.
struct Region {
  char* base;
  uint64 size;
  uint64 alignment;
};

Region arena() { return {shared_state->arena, shared_state->arena_size, PG_CACHE_LINE_SIZE}; }

Region dynamic_region() {
  const DynamicMemory& memory = dynamic_memory();
  return {memory.base, memory.size, whole_pages(1)};
}

bool is_within(const Region& region, const char* block) {
  return block >= region.base && block < region.base + region.size;
}

// What lies there: the block of a filter, or a segment.
Segment segment_of(const FilterSlot* slot) {
  return {reinterpret_cast<char*>(slot->block), slot->size};
}

// Collects what is in use of a region in its order into `used` (scratch_places).
int blocks_in_use(const Region& region, Segment* used) {
  int count = 0;
  for (int i = 0; i < shared_state->slot_count; ++i) {
    const FilterSlot* slot = &shared_state->slots[i];
    const Segment block = segment_of(slot);
    if (is_in_use(slot) && is_within(region, block.start)) used[count++] = block;
  }
  for (const Segment& segment : shared_state->segments)
    if (segment.start != nullptr && is_within(region, segment.start)) used[count++] = segment;
  std::sort(used, used + count,
            [](const Segment& a, const Segment& b) { return a.start < b.start; });
  return count;
}

// Calls visit(at, size) for every gap between the blocks, in order, until it returns true.
template <typename Visit>
bool visit_gaps(const Region& region, Segment* scratch, Visit&& visit) {
  const int count = blocks_in_use(region, scratch);
  char* at = region.base;
  for (int i = 0; i <= count; ++i) {
    char* end = i < count ? scratch[i].start : region.base + region.size;
    if (end > at && visit(at, static_cast<uint64>(end - at))) return true;
    if (i < count) at = end + TYPEALIGN64(region.alignment, scratch[i].size);
  }
  return false;
}

char* find_gap(const Region& region, Segment* scratch, uint64 size) {
  char* found = nullptr;
  visit_gaps(region, scratch, [&](char* at, uint64 gap) {
    if (gap < size) return false;
    found = at;
    return true;
  });
  return found;
}

uint64 segments_in_use() {
  uint64 sum = 0;
  for (const Segment& segment : shared_state->segments) sum += segment.size;
  return sum;
}

uint64 dynamic_in_use() {
  uint64 sum = segments_in_use();
  for (int i = 0; i < shared_state->slot_count; ++i) {
    const FilterSlot* slot = &shared_state->slots[i];
    if (is_in_use(slot) && is_dynamic(slot)) sum += whole_pages(slot->size);
  }
  return sum;
}

uint64 dynamic_limit() {
  return Min(static_cast<uint64>(dynamic_memory_kb) * 1024, dynamic_memory().size);
}

// Room to sort all blocks in, allocated before any lock is taken and kept.
Segment* scratch_places() {
  static Segment* scratch = nullptr;
  if (scratch == nullptr)
    scratch = static_cast<Segment*>(MemoryContextAlloc(
        TopMemoryContext, sizeof(Segment) * (shared_state->slot_count + kMaxSegments)));
  return scratch;
}

// Where so many bytes of dynamic memory could lie; nullptr: there is no room. Needs directory_lock.
char* find_dynamic(uint64 pages) {
  const uint64 used = dynamic_in_use();
  if (used > dynamic_limit() || pages > dynamic_limit() - used) return nullptr;
  return find_gap(dynamic_region(), scratch_places(), pages);
}

char* reserve_segment(uint64 size) {
  char* start = nullptr;
  LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
  for (Segment& segment : shared_state->segments) {
    if (segment.start != nullptr) continue;
    if (segments_in_use() + size <= dynamic_limit() / 2) start = find_dynamic(size);
    if (start != nullptr) segment = {start, size};
    break;
  }
  LWLockRelease(shared_state->directory_lock);
  return start;
}

Segment* find_segment(const char* start) {
  for (Segment& segment : shared_state->segments)
    if (segment.start == start) return &segment;
  return nullptr;
}

}  // namespace

void init_shared_state(const SharedSection* others, int count) {
  sections = others;
  section_count = count;
}

void require_shared_state() {
  if (shared_state != nullptr) {
    scratch_places();
    return;
  }
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("streamfilter must be loaded via shared_preload_libraries to use named filters"),
          errdetail("Named filters are in shared memory that every session has from its start: one "
                    "that has used none, too, drops filters and ends prepared transactions."),
          errhint("Set shared_preload_libraries = 'streamfilter' in postgresql.conf and restart "
                  "the server."));
}

void reset_counters(FilterSlot* slot, TimestampTz now) {
  start_statistics(&slot->stats, now);
  for (pg_atomic_uint64* value : {&slot->loss.applied, &slot->loss.accepted, &slot->loss.looked_at,
                                  &slot->loss.fill, &slot->loss.passing, &slot->overfull_logged,
                                  &slot->unregistered, &slot->applied, &slot->exclusive_xact})
    pg_atomic_init_u64(value, 0);
  pg_atomic_init_u64(&slot->loss.odds, LossEstimate::kUnknownOdds);
  pg_atomic_init_u32(&slot->arriving_keys, 0);
  pg_atomic_init_u32(&slot->arriving_erasures, 0);
  pg_atomic_init_u32(&slot->exclusive_wanted, 0);
  memset(static_cast<void*>(&slot->saved), 0, sizeof slot->saved);
  pg_atomic_init_u64(&slot->saved.next_number, 1);
}

LWLock* slice_lock(const FilterSlot* slot, uint32 slice) {
  const uint32 number = static_cast<uint32>(slot - shared_state->slots) * 67 + slice;
  return &shared_state->slice_locks[number % kSliceLocks].lock;
}

FilterSlot* find_slot(Oid database, Oid relation, SlotState state) {
  for (int i = 0; i < shared_state->slot_count; ++i) {
    FilterSlot* slot = &shared_state->slots[i];
    if (slot->state == state && slot->database == database && slot->relation == relation)
      return slot;
  }
  return nullptr;
}

FilterSlot* find_free_slot() {
  FilterSlot* found = nullptr;
  for (int i = 0; i < shared_state->slot_count; ++i) {
    FilterSlot* slot = &shared_state->slots[i];
    if (slot->state == SlotState::free) return slot;
    if (slot->state == SlotState::counted) found = slot;
  }
  return found;
}

Header* find_space(uint64 size) {
  char* block = find_gap(arena(), scratch_places(), size);
  if (block == nullptr) block = find_dynamic(whole_pages(size));
  return reinterpret_cast<Header*>(block);
}

namespace {

// Slots that this process has emptied and not given back.
FilterSlot* first_emptied = nullptr;

}  // namespace

void free_slot(FilterSlot* slot) {
  const bool emptied = is_dynamic(slot);
  slot->state = emptied ? SlotState::emptied : SlotState::free;
  slot->database = slot->relation = InvalidOid;
  slot->owner = MyProcPid;
  slot->generation = 0;
  if (!emptied) return;
  slot->next_emptied = first_emptied;
  first_emptied = slot;
}

bool is_dynamic(const FilterSlot* slot) {
  return is_within(dynamic_region(), segment_of(slot).start);
}

int back_slot(const FilterSlot* slot, void (*between)()) {
  return is_dynamic(slot) ? back_with_memory(reinterpret_cast<char*>(slot->block),
                                             whole_pages(slot->size), between)
                          : 0;
}

void give_back_slots() {
  while (first_emptied != nullptr) {
    FilterSlot* slot = first_emptied;
    first_emptied = slot->next_emptied;
    give_back_memory(reinterpret_cast<char*>(slot->block), whole_pages(slot->size));
    LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
    slot->state = SlotState::free;
    LWLockRelease(shared_state->directory_lock);
  }
}

char* take_segment(uint64 wanted, uint64 least, uint64* size) {
  if (dynamic_memory().base == nullptr) return nullptr;
  for (; wanted >= least && wanted > 0; wanted /= 2) {
    const uint64 pages = whole_pages(wanted);
    char* start = reserve_segment(pages);
    if (start == nullptr) continue;
    if (back_with_memory(start, pages, [] {}) == 0) {
      // The system may have kept what was there.
      memset(start, 0, pages);
      *size = pages;
      return start;
    }
    give_back_segment(start);
  }
  return nullptr;
}

// Until the memory is given back nobody else may lie there.
void give_back_segment(char* start) {
  give_back_memory(start, find_segment(start)->size);
  LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
  *find_segment(start) = {nullptr, 0};
  LWLockRelease(shared_state->directory_lock);
}

int errhint_more_memory() {
  if (dynamic_memory().base == nullptr)
    return errhint(
        "Use less memory, drop a filter, or raise streamfilter.shared_memory (now %dkB) "
        "and restart the server.",
        shared_memory_kb);
  return errhint(
      "Use less memory, drop a filter, or raise streamfilter.dynamic_memory (now %dkB) "
      "and reload the configuration.",
      dynamic_memory_kb);
}

MemoryUse memory_use() {
  Segment* scratch = scratch_places();
  MemoryUse use = {};
  LWLockAcquire(shared_state->directory_lock, LW_SHARED);
  visit_gaps(arena(), scratch, [&](char*, uint64 gap) {
    use.largest_free = Max(use.largest_free, gap);
    use.free += gap;
    return false;
  });
  use.dynamic = dynamic_in_use();
  for (int i = 0; i < shared_state->slot_count; ++i)
    use.slots_in_use += is_in_use(&shared_state->slots[i]);
  LWLockRelease(shared_state->directory_lock);
  const uint64 limit = dynamic_limit(), left = limit > use.dynamic ? limit - use.dynamic : 0;
  use.total = shared_state->arena_size + Max(limit, use.dynamic);
  use.free += left;
  use.largest_free = Max(use.largest_free, left);
  return use;
}

}  // namespace streamfilter::pg
