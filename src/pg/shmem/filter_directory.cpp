// The directory of filters and their memory.
//
// Locking rules:
// - directory_lock protects `state`, `database`, `relation`, `server`, `owner`,
//   `generation`, `block`, `size`, the place and the lists of every slot, the regions, `segments`,
//   the buckets and `next_generation`. To read or
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
#include <unistd.h>
}

#include <initializer_list>

#include "pg/server/lock_wait.hpp"
#include "pg/server/settings.hpp"
#include "pg/server/wait_events.hpp"
#include "pg/shmem/filter_directory.hpp"
#include "pg/shmem/locked_work.hpp"

namespace streamfilter::pg {

SharedState* shared_state = nullptr;
int stored_filters = 0;

namespace {

constexpr int kSliceLocks = 1024;
constexpr int kSpareSlots = 64;   // for blocks that are made beside those of filters
constexpr int kMaxSlots = 65536;  // slot numbers that the table in flight can store
constexpr char kDirectoryTranche[] = "streamfilter_directory";
constexpr char kSliceTranche[] = "streamfilter_slice";

const SharedSection* sections = nullptr;
int section_count = 0;
bool has_played = false;  // of the postmaster: a crash does not change what it has reserved

void for_each_section(void (*SharedSection::*what)()) {
  for (int i = 0; i < section_count; ++i)
    if (sections[i].*what != nullptr) (sections[i].*what)();
}

Size slot_bytes() {
  return CACHELINEALIGN(add_size(offsetof(SharedState, slots),
                                 mul_size(sizeof(FilterSlot), static_cast<Size>(all_slots()))));
}

uint32 bucket_count() { return std::bit_ceil(static_cast<uint32>(all_slots())); }

Size directory_bytes() {
  return CACHELINEALIGN(add_size(slot_bytes(), mul_size(sizeof(FilterSlot*), bucket_count())));
}

Size played_bytes() { return mul_size(sizeof(PlayedRows), static_cast<Size>(all_slots())); }

Size arena_bytes() { return mul_size(static_cast<Size>(shared_memory_kb), 1024); }

// Free slots come before counted ones.
void add_free(FilterSlot* slot) {
  const bool first = slot->state == SlotState::free;
  FilterSlot* after = first ? shared_state->first_free : nullptr;
  FilterSlot* before = first ? nullptr : shared_state->last_free;
  slot->before_free = before;
  slot->after_free = after;
  (before != nullptr ? before->after_free : shared_state->first_free) = slot;
  (after != nullptr ? after->before_free : shared_state->last_free) = slot;
  ++shared_state->free_count;
}

void remove_free(const FilterSlot* slot) {
  FilterSlot *before = slot->before_free, *after = slot->after_free;
  (before != nullptr ? before->after_free : shared_state->first_free) = after;
  (after != nullptr ? after->before_free : shared_state->last_free) = before;
  --shared_state->free_count;
}

FilterSlot** bucket_of(Oid database, Oid relation) {
  const uint64 both = static_cast<uint64>(database) << 32 | relation;
  return &shared_state->buckets[mix64(both) & shared_state->bucket_mask];
}

void leave_bucket(const FilterSlot* slot) {
  FilterSlot** at = bucket_of(slot->database, slot->relation);
  while (*at != slot) at = &(*at)->next_in_bucket;
  *at = slot->next_in_bucket;
}

void enter_bucket(FilterSlot* slot) {
  slot->next_in_bucket = nullptr;
  FilterSlot** at = bucket_of(slot->database, slot->relation);
  while (*at != nullptr) at = &(*at)->next_in_bucket;
  *at = slot;
}

void start_directory(char* memory) {
  SharedState* state = shared_state;
  state->directory_lock = &GetNamedLWLockTranche(kDirectoryTranche)->lock;
  state->slice_locks = GetNamedLWLockTranche(kSliceTranche);
  ConditionVariableInit(&state->built);
  state->next_generation = 1;
  state->slot_count = all_slots();
  state->buckets = reinterpret_cast<FilterSlot**>(memory + slot_bytes());
  state->bucket_mask = bucket_count() - 1;
  state->arena.base = reinterpret_cast<char*>(CACHELINEALIGN(memory + directory_bytes()));
  state->arena.size = arena_bytes();
  state->arena.unit = PG_CACHE_LINE_SIZE;
  for (int i = state->slot_count; i-- > 0;) {
    reset_counters(&state->slots[i], 0);
    add_free(&state->slots[i]);
  }
  start_dynamic_memory();
  state->dynamic.base = dynamic_memory().base;
  state->dynamic.size = dynamic_memory().size;
  state->dynamic.unit = whole_pages(1);
}

}  // namespace

int all_slots() { return std::min(std::max(max_filters, stored_filters) + kSpareSlots, kMaxSlots); }

void request_shared_state(MemoryCall* call) {
  call->go_on();
  for_each_section(&SharedSection::request);
  RequestAddinShmemSpace(add_size(add_size(directory_bytes(), arena_bytes()), PG_CACHE_LINE_SIZE));
  has_played = starts_in_recovery();
  if (has_played) RequestAddinShmemSpace(played_bytes());
  RequestNamedLWLockTranche(kDirectoryTranche, 1);
  RequestNamedLWLockTranche(kSliceTranche, kSliceLocks);
}

void start_shared_state(MemoryCall* call) {
  call->go_on();
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  shared_state = nullptr;  // left from before a crash
  if (attach_shared(shared_state, "streamfilter",
                    directory_bytes() + arena_bytes() + PG_CACHE_LINE_SIZE)) {
    memset(static_cast<void*>(shared_state), 0, directory_bytes());
    start_directory(reinterpret_cast<char*>(shared_state));
    if (has_played) attach_shared(shared_state->played, "streamfilter standby", played_bytes());
  }
  for_each_section(&SharedSection::start);
  LWLockRelease(AddinShmemInitLock);
  for_each_section(&SharedSection::ready);
}

static uint64 dynamic_limit() {
  return Min(static_cast<uint64>(dynamic_memory_kb) * 1024, shared_state->dynamic.size);
}

static char* reserve_segment(uint64 size) {
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  for (Place& segment : shared_state->segments) {
    if (segment.start != nullptr) continue;
    if (shared_state->segments_in_use + size > dynamic_limit() / 2 || !take_dynamic(&segment, size))
      return nullptr;
    shared_state->segments_in_use += size;
    return segment.start;
  }
  return nullptr;
}

void init_shared_state(const SharedSection* others, int count) {
  sections = others;
  section_count = count;
}

bool starts_in_recovery() {
  return access(RECOVERY_SIGNAL_FILE, F_OK) == 0 || access(STANDBY_SIGNAL_FILE, F_OK) == 0;
}

void require_shared_state() {
  if (shared_state != nullptr) return;
  ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
          errmsg("streamfilter must be loaded via shared_preload_libraries to use named filters"),
          errdetail("Every session needs the library, because any session may drop a filter or end "
                    "a prepared transaction."),
          errhint_preload());
}

void reset_counters(FilterSlot* slot, TimestampTz now) {
  start_statistics(&slot->stats, now);
  const auto clear = [](auto& part) { memset(static_cast<void*>(&part), 0, sizeof part); };
  clear(slot->loss);
  pg_atomic_init_u64(&slot->loss.odds, LossEstimate::kUnknownOdds);
  clear(slot->overfull_logged);
  clear(slot->ahead_of_clock);
  clear(slot->applied);
  clear(slot->pins);
  clear(slot->restoring);
  clear(slot->unfinished);
  clear(slot->saved);
  clear(slot->standby);
  clear(slot->log);
  slot->set_aside[0] = '\0';
  slot->why_empty = WhyEmpty::is_new;
  clear(slot->copy);
  if (PlayedRows* played = played_rows(slot)) played->next = 0;
  pg_atomic_init_u64(&slot->log.next_number, 1);
}

void raise_count(FilterSlot* slot, uint64 number) {
  uint64 now = pg_atomic_read_u64(&slot->log.count);
  while (now < number && !pg_atomic_compare_exchange_u64(&slot->log.count, &now, number)) {
  }
}

LWLock* slice_lock(const FilterSlot* slot, uint32 slice) {
  const uint32 number = static_cast<uint32>(slot - shared_state->slots) * 67 + slice;
  return note_slice_lock(&shared_state->slice_locks[number % kSliceLocks].lock);
}

static FilterSlot* next_in_chain(FilterSlot* slot, Oid database, Oid relation) {
  while (slot != nullptr && (slot->database != database || slot->relation != relation))
    slot = slot->next_in_bucket;
  return slot;
}

FilterSlot* first_slot_of(Oid database, Oid relation) {
  return next_in_chain(*bucket_of(database, relation), database, relation);
}

FilterSlot* next_slot_of(const FilterSlot* slot) {
  return next_in_chain(slot->next_in_bucket, slot->database, slot->relation);
}

FilterSlot* find_slot(Oid database, Oid relation, SlotState state) {
  FilterSlot* slot = first_slot_of(database, relation);
  while (slot != nullptr && slot->state != state) slot = next_slot_of(slot);
  return slot;
}

namespace {

constexpr unsigned bit_of(SlotState state) { return 1U << static_cast<unsigned>(state); }

template <typename... States>
constexpr unsigned any_of(States... states) {
  return (bit_of(states) | ...);
}

// By SlotState: what may follow.
constexpr unsigned kMoves[] = {
    any_of(SlotState::counted, SlotState::building),
    any_of(SlotState::free, SlotState::going),
    any_of(SlotState::pending, SlotState::copying, SlotState::live, SlotState::going),
    any_of(SlotState::live, SlotState::going),
    any_of(SlotState::pending, SlotState::going),
    any_of(SlotState::retired, SlotState::going),
    any_of(SlotState::going),
    any_of(SlotState::free),
};

bool has_relation(SlotState state) { return state != SlotState::free && state != SlotState::going; }

}  // namespace

void move_slot(FilterSlot* slot, SlotState to) {
  Assert(!IsUnderPostmaster || LWLockHeldByMeInMode(shared_state->directory_lock, LW_EXCLUSIVE));
  Assert((kMoves[static_cast<unsigned>(slot->state)] & bit_of(to)) != 0);
  const bool had = has_relation(slot->state), has = has_relation(to);
  if (!is_in_use(slot)) remove_free(slot);
  if (had && !has) leave_bucket(slot);
  if (has && !had) enter_bucket(slot);
  slot->state = to;
  if (!is_in_use(slot)) add_free(slot);
}

void enter_slot(FilterSlot* slot, Oid database, Oid relation, SlotState state) {
  if (slot->state == SlotState::counted) move_slot(slot, SlotState::free);
  slot->database = database;
  slot->relation = relation;
  move_slot(slot, state);
}

int filters_in_memory() { return shared_state->slot_count - shared_state->free_count; }

FilterSlot* find_free_slot(bool is_spare) {
  if (!is_spare && filters_in_memory() >= max_filters) return nullptr;
  FilterSlot* slot = shared_state->first_free;
  while (slot != nullptr && slot->waits != 0) slot = slot->after_free;
  return slot;
}

bool take_dynamic(Place* place, uint64 size) {
  Region* region = &shared_state->dynamic;
  const uint64 limit = dynamic_limit();
  return region->in_use <= limit && size <= limit - region->in_use &&
         take_place(region, place, size);
}

bool take_space(FilterSlot* slot, uint64 size) {
  if (!take_place(&shared_state->arena, &slot->place, size) &&
      !take_dynamic(&slot->place, whole_pages(size)))
    return false;
  slot->block = reinterpret_cast<Header*>(slot->place.start);
  slot->size = size;
  slot->zeroes = is_dynamic(slot) ? gives_zeroes() : slot->place.is_new;
  return true;
}

static void free_bytes(FilterSlot* slot) {
  if (is_dynamic(slot)) {
    slot->next_emptied = shared_state->first_emptied;
    shared_state->first_emptied = slot;
    shared_state->emptied_bytes += slot->place.size;
    return;
  }
  if (slot->place.start != nullptr) free_place(&shared_state->arena, &slot->place);
  move_slot(slot, SlotState::free);
}

void free_slot(FilterSlot* slot) {
  move_slot(slot, SlotState::going);
  slot->database = slot->relation = InvalidOid;
  slot->owner = MyProcPid;
  slot->generation = 0;
  slot->waits = 0;
  pg_atomic_write_u32(&slot->copy.to, 0);
  if (pg_atomic_read_u32(&slot->pins) == 0) free_bytes(slot);
}

void unpin_slot(FilterSlot* slot) {
  LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
  const bool frees =
      pg_atomic_sub_fetch_u32(&slot->pins, 1) == 0 && slot->state == SlotState::going;
  if (frees) free_bytes(slot);
  LWLockRelease(shared_state->directory_lock);
  if (frees) give_back_slots();
}

void make_live(FilterSlot* slot) {
  constexpr SlotState kFormer[] = {SlotState::live, SlotState::counted};
  for (const SlotState former : kFormer)
    if (FilterSlot* old = find_slot(slot->database, slot->relation, former)) free_slot(old);
  move_slot(slot, SlotState::live);
}

void note_kept(FilterSlot* slot, bool logged) {
  slot->saved.logged = logged;
  pg_atomic_write_u32(&slot->saved.has_header, 1);
  if (logged) return;
  slot->saved.last_saved = 0;
  pg_atomic_write_u64(&slot->log.bytes, 0);
}

void shrink_slot(FilterSlot* slot, uint64 size) {
  Region* region = region_of(slot);
  const uint64 kept = TYPEALIGN64(region->unit, size), had = slot->place.size;
  if (is_dynamic(slot) && had > kept) give_back_memory(slot->place.start + kept, had - kept);
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  shrink_place(region, &slot->place, size);
  slot->size = size;
}

static uint64 dynamic_in_use() {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return shared_state->dynamic.in_use;
}

// The place is taken already.
static int back_place(char* start, uint64 size, void (*between)()) {
  return back_with_memory(start, size, dynamic_in_use() - size, between);
}

uint64 dynamic_left() { return memory_left(dynamic_in_use()); }

char* take_segment(uint64 wanted, uint64 least, uint64* size) {
  if (dynamic_memory().base == nullptr) return nullptr;
  for (; wanted >= least && wanted > 0; wanted /= 2) {
    const uint64 pages = whole_pages(wanted);
    char* start = reserve_segment(pages);
    if (start == nullptr) continue;
    if (back_place(start, pages, [] {}) == 0) {
      if (!gives_zeroes()) memset(start, 0, pages);
      *size = pages;
      return start;
    }
    give_back_segment(start);
  }
  return nullptr;
}

// Until the memory is given back, no filter may use the place.
void give_back_segment(char* start) {
  Place* segment = shared_state->segments;
  while (segment->start != start) ++segment;
  give_back_memory(start, segment->size);
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  shared_state->segments_in_use -= segment->size;
  free_place(&shared_state->dynamic, segment);
}

void format_all_slices(FilterSlot* slot, Header* block) {
  for (uint32 i = 0; i < block->parameters.slices; ++i) {
    const LockHeld held(slice_lock(slot, i), LW_EXCLUSIVE);
    format_slice(block, i);
    count_work(Work::bytes, block->parameters.slice_bytes);
  }
}

void copy_locked_slice(const FilterSlot* slot, uint32 slice, void* to) {
  const Header* block = block_of(slot);
  const LockHeld held(slice_lock(slot, slice), LW_SHARED);
  memcpy(to, slice_at(block, slice).state, block->parameters.slice_bytes);
  count_work(Work::bytes, block->parameters.slice_bytes);
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
  MemoryUse use = {};
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  const Region& arena = shared_state->arena;
  use.free = arena.size - arena.in_use;
  use.largest_free = largest_gap(&arena);
  use.dynamic = shared_state->dynamic.in_use;
  use.slots_in_use = filters_in_memory();
  const uint64 limit = dynamic_limit(), left = limit > use.dynamic ? limit - use.dynamic : 0;
  use.total = arena.size + Max(limit, use.dynamic);
  use.free += left;
  use.largest_free = Max(use.largest_free, left);
  return use;
}

BackgroundWorker make_worker(const char* function, const char* name) {
  BackgroundWorker worker{};
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
  worker.bgw_start_time = BgWorkerStart_ConsistentState;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  strlcpy(worker.bgw_library_name, "streamfilter", sizeof worker.bgw_library_name);
  strlcpy(worker.bgw_function_name, function, sizeof worker.bgw_function_name);
  strlcpy(worker.bgw_name, name, sizeof worker.bgw_name);
  strlcpy(worker.bgw_type, name, sizeof worker.bgw_type);
  return worker;
}

// ---- the memory worker --------------------------------------------------------------------------

// Dynamic memory that filters have left. Giving a GB back takes .3 s and more, so a worker does it,
// and DROP or TRUNCATE of a large filter does not wait. Until then the memory belongs to no filter;
// a session that finds no room meanwhile helps.
//
// The first access to a page takes longer than a row. Up to kWhole bytes a block is in memory as a
// whole: a worker accesses the pages of a new one while sessions begin to use it, and TRUNCATE
// clears it instead of giving pages back. Of a larger block, pages come when rows use them.

namespace {

constexpr uint64 kMuch = 64 * 1024 * 1024;  // bytes that justify a worker
constexpr uint64 kWhole = 4 * kMuch;

// nullptr if there is none.
FilterSlot* take_emptied() {
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  FilterSlot* slot = shared_state->first_emptied;
  if (slot != nullptr) shared_state->first_emptied = slot->next_emptied;
  return slot;
}

void give_back_all() {
  while (FilterSlot* slot = take_emptied()) {
    give_back_memory(slot->place.start, slot->place.size);
    LWLockAcquire(shared_state->directory_lock, LW_EXCLUSIVE);
    shared_state->emptied_bytes -= slot->place.size;
    free_place(&shared_state->dynamic, &slot->place);
    move_slot(slot, SlotState::free);
    LWLockRelease(shared_state->directory_lock);
    // The postmaster, which reads the file of unlogged filters, has no PGPROC, and nobody waits
    // yet.
    if (MyProc != nullptr) ConditionVariableBroadcast(&shared_state->built);
  }
}

// Includes those that another process is giving back.
uint64 bytes_emptied() {
  const LockHeld held(shared_state->directory_lock, LW_SHARED);
  return shared_state->emptied_bytes;
}

// A use of a slot.
struct NewBlock {
  uint32 number;
  uint64 generation;
};

// False if no worker is free. Allocates nothing.
bool start_worker(const NewBlock& block = {}) {
  BackgroundWorker worker = make_worker("streamfilter_memory_worker", "streamfilter memory");
  worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
  worker.bgw_start_time = BgWorkerStart_PostmasterStart;
  memcpy(worker.bgw_extra, &block, sizeof block);
  return RegisterDynamicBackgroundWorker(&worker, nullptr);
}

// Nothing keeps the block in its place meanwhile: if it goes, at most a piece of what it leaves is
// accessed, and stays in memory until another filter takes it. Only reads, so it is still zeroes.
void touch_block(const NewBlock& of) {
  constexpr uint64 kPiece = 1024 * 1024;
  const volatile FilterSlot* slot = &shared_state->slots[of.number];
  const char* start = slot->place.start;
  const uint64 page = whole_pages(1);
  for (uint64 at = 0; slot->generation == of.generation && at < slot->place.size; at += kPiece) {
    if (slot->place.start != start) return;
    for (uint64 end = Min(at + kPiece, slot->place.size), i = at; i < end; i += page)
      static_cast<void>(*static_cast<const volatile char*>(start + i));
  }
}

// The limit of dynamic memory counts what is used: of two blocks there only one is.
bool take_place_beside(const FilterSlot* slot, Place* place) {
  return is_dynamic(slot) ? take_place(&shared_state->dynamic, place, slot->place.size)
                          : take_dynamic(place, whole_pages(slot->size));
}

// A slot that holds a block of zeroes for somebody else; nullptr: there is none.
FilterSlot* take_spare(const FilterSlot* slot) {
  const LockHeld held(shared_state->directory_lock, LW_EXCLUSIVE);
  FilterSlot* spare = find_free_slot(true);
  if (spare != nullptr &&
      (spare->state != SlotState::free || !take_place_beside(slot, &spare->place)))
    spare = nullptr;
  if (spare != nullptr) enter_slot(spare, InvalidOid, InvalidOid, SlotState::building);
  return spare;
}

}  // namespace

int back_slot(const FilterSlot* slot, void (*between)()) {
  const uint64 size = slot->place.size;
  if (const int error = is_dynamic(slot) ? back_place(slot->place.start, size, between) : 0)
    return error;
  if (slot->zeroes && size >= kMuch && size <= kWhole)
    start_worker({static_cast<uint32>(slot - shared_state->slots), slot->generation});
  return 0;
}

void give_back_slots() {
  if (bytes_emptied() >= kMuch && start_worker()) return;
  give_back_all();
}

void wait_for_emptied() {
  ConditionVariablePrepareToSleep(&shared_state->built);
  for (;;) {
    give_back_all();
    if (bytes_emptied() == 0) break;
    ConditionVariableSleep(&shared_state->built, wait_event(Wait::memory));
  }
  ConditionVariableCancelSleep();
}

bool renew_block(FilterSlot* slot) {
  if (slot->size <= kWhole || !gives_pages_late() || !gives_zeroes() ||
      (!is_dynamic(slot) && dynamic_left() < slot->size))
    return false;
  FilterSlot* spare = take_spare(slot);
  if (spare == nullptr) return false;
  auto* block = reinterpret_cast<Header*>(spare->place.start);
  memcpy(static_cast<void*>(block), block_of(slot), sizeof(Header));
  for (uint32 i = 0; i < block->parameters.slices; ++i) format_zeroes(block, i);
  count_work(Work::bytes, sizeof(SliceState) * block->parameters.slices);
  const DirectoryChange held;
  exchange_places(region_of(slot), &slot->place, region_of(spare), &spare->place);
  slot->block = block;
  free_slot(spare);
  return true;
}

}  // namespace streamfilter::pg

extern "C" {
PGDLLEXPORT void streamfilter_memory_worker(Datum);
}

// Signals stay blocked: work that has begun must end, which takes seconds.
void streamfilter_memory_worker(Datum) {
  using namespace streamfilter::pg;
  if (shared_state == nullptr) return;
  NewBlock block;
  memcpy(&block, MyBgworkerEntry->bgw_extra, sizeof block);
  if (block.generation != 0) touch_block(block);
  give_back_all();
}

// ---- ranges that are missing --------------------------------------------------------------------

namespace streamfilter::pg {

static uint64 bit_of(uint32 range) { return UINT64CONST(1) << range; }

void begin_ranges(FilterSlot* slot, uint32 count) {
  pg_atomic_write_u64(&slot->restoring.wanted, 0);
  pg_atomic_write_u64(&slot->restoring.missing, ~UINT64CONST(0) >> (kMostRanges - count));
  pg_atomic_write_u32(&slot->restoring.restorer, static_cast<uint32>(MyProcPid));
}

bool is_any_wanted(FilterSlot* slot) {
  return (pg_atomic_read_u64(&slot->restoring.wanted) &
          pg_atomic_read_u64(&slot->restoring.missing)) != 0;
}

uint32 next_range(FilterSlot* slot) {
  const uint64 missing = pg_atomic_read_u64(&slot->restoring.missing),
               wanted = pg_atomic_read_u64(&slot->restoring.wanted) & missing;
  return static_cast<uint32>(pg_rightmost_one_pos64(wanted != 0 ? wanted : missing));
}

void end_range(FilterSlot* slot, uint32 range) {
  pg_atomic_fetch_and_u64(&slot->restoring.missing, ~bit_of(range));
  ConditionVariableBroadcast(&shared_state->built);
}

void end_restoring(FilterSlot* slot) {
  // An error may call this twice, and somebody else have taken over in between.
  auto own = static_cast<uint32>(MyProcPid);
  if (pg_atomic_compare_exchange_u32(&slot->restoring.restorer, &own, 0))
    ConditionVariableBroadcast(&shared_state->built);
}

bool wait_for_ranges(FilterSlot* slot, uint64 ranges) {
  bool takes_over = false;
  pg_atomic_fetch_or_u64(&slot->restoring.wanted, ranges);
  LockWait(slot->relation).sleep_while(&shared_state->built, [&] {
    if ((pg_atomic_read_u64(&slot->restoring.missing) & ranges) == 0) return false;
    uint32 nobody = 0;
    takes_over = pg_atomic_compare_exchange_u32(&slot->restoring.restorer, &nobody,
                                                static_cast<uint32>(MyProcPid));
    return !takes_over;
  });
  return !takes_over;
}

}  // namespace streamfilter::pg
