#include "pg/server/postgres.hpp"

extern "C" {
#include "postmaster/interrupt.h"
}

#include "core/filter/resize.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/no_raise.hpp"
#include "pg/shmem/locked_work.hpp"
#include "pg/storage/restore_ranges.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint64 kLongLog = 16 * 1024 * 1024;  // bytes, more than which a row would wait for

// What the log has, by ranges, and within one in the order in which it came.
struct LoggedChanges {
  LoggedChange* changes = nullptr;
  uint64 count = 0, places = 0;
  uint64 starts[kMostRanges + 1] = {};  // of a range
};

uint32 count_ranges(const FilterSlot* slot) {
  return Min(block_of(slot)->parameters.slices * slot->restoring.ranges, kMostRanges);
}

// Of `parts` that divide `all`, the one that has `number`; and the first number of one.
uint32 part_with(uint64 number, uint64 all, uint64 parts) {
  return static_cast<uint32>(number * parts / all);
}
uint32 first_in(uint64 part, uint64 all, uint64 parts) {
  return static_cast<uint32>((part * all + parts - 1) / parts);
}

struct Range {
  SliceRange slices;
  StateScan::Chunks chunks;
};

// A slice's first chunk, which has its counters, comes before its ranges.
Range range_at(const FilterSlot* slot, uint32 number) {
  const Parameters& parameters = block_of(slot)->parameters;
  const uint64 each = chunks_of(parameters.slice_bytes);
  const uint32 parts = slot->restoring.ranges;
  Range range;
  if (parts == 1) {
    const uint32 ranges = count_ranges(slot);
    range.slices = {first_in(number, parameters.slices, ranges),
                    first_in(uint64{number} + 1, parameters.slices, ranges)};
    range.chunks = {static_cast<int32>(1 + range.slices.first * each),
                    static_cast<int32>(range.slices.end * each)};
    return range;
  }
  const uint32 slice = number / parts, part = number % parts;
  range.slices = {slice, slice + 1};
  range.chunks = {
      static_cast<int32>(1 + slice * each + Max(first_in(part, each, parts), uint32{1})),
      static_cast<int32>(slice * each + first_in(uint64{part} + 1, each, parts))};
  return range;
}

uint64 ranges_of_slice(const FilterSlot* slot, uint32 slice) {
  const uint32 parts = slot->restoring.ranges;
  if (parts > 1) return ~UINT64CONST(0) >> (kMostRanges - parts) << (slice * parts);
  return UINT64CONST(1) << part_with(slice, block_of(slot)->parameters.slices, count_ranges(slot));
}

void keep_change(LoggedChanges* kept, const LoggedChange& change) {
  if (kept->count == kept->places) {
    kept->places = Max(kept->places * 2, uint64{1024});
    const Size bytes = sizeof(LoggedChange) * kept->places;
    kept->changes = static_cast<LoggedChange*>(
        kept->changes == nullptr ? MemoryContextAllocHuge(CurrentMemoryContext, bytes)
                                 : repalloc_huge(kept->changes, bytes));
  }
  kept->changes[kept->count++] = change;
}

LoggedChanges sort_by_range(const StateReading& reading, const LoggedChanges& all) {
  LoggedChanges sorted;
  sorted.count = all.count;
  sorted.changes = static_cast<LoggedChange*>(
      MemoryContextAllocHuge(CurrentMemoryContext, sizeof(LoggedChange) * (all.count + 1)));
  uint64 next[kMostRanges + 1] = {};
  for (uint64 i = 0; i < all.count; ++i)
    ++next[range_of_key(reading.slot, all.changes[i].element.hash) + 1];
  for (uint32 range = 1; range < lengthof(next); ++range) next[range] += next[range - 1];
  memcpy(sorted.starts, next, sizeof next);
  for (uint64 i = 0; i < all.count; ++i)
    sorted.changes[next[range_of_key(reading.slot, all.changes[i].element.hash)]++] =
        all.changes[i];
  return sorted;
}

LoggedChanges collect_changes(const StateReading& reading, int64 first_row) {
  LoggedChanges all;
  LogRow row;
  while (reading.sort->next(&row)) {
    if (row.number < first_row || !is_of_life(reading, row, reading.slot->saved.identity)) continue;
    const uint64 count = count_changes(row);
    for (uint64 i = 0; i < count; ++i) keep_change(&all, logged_change_at(row, i));
  }
  const LoggedChanges sorted = sort_by_range(reading, all);
  if (all.changes != nullptr) pfree(all.changes);
  return sorted;
}

void empty_slices(Header* block, SliceRange slices) {
  for (uint32 i = slices.first; i < slices.end; ++i) {
    CHECK_FOR_INTERRUPTS();
    memset(static_cast<void*>(slice_at(block, i).state), 0, block->parameters.slice_bytes);
    format_slice(block, i);
    count_work(Work::bytes, block->parameters.slice_bytes);
  }
}

bool is_slice_sound(const FilterSlot* slot, uint32 slice) {
  Problem problem;
  const Header* block = block_of(slot);
  return check_slice(block->parameters, slice_at(block, slice), slice, problem);
}

// Empties a slice that may have keys of new rows, which the log has by now. Returns false if it is
// `sound`.
bool empty_used_slice(FilterSlot* slot, uint32 slice, bool (*sound)(const FilterSlot*, uint32)) {
  const LockHeld held(slice_lock(slot, slice), LW_EXCLUSIVE);
  const bool empties = sound == nullptr || !sound(slot, slice);
  if (empties) {
    const uint64 ranges = ranges_of_slice(slot, slice);
    pg_atomic_fetch_or_u64(&slot->restoring.missing, ranges);
    slot->restoring.without_image |= ranges;
    format_slice(block_of(slot), slice);
  }
  return empties;
}

// False: the log must be read again.
bool restore_range(StateReading* reading, const LoggedChanges& log, uint32 number) {
  FilterSlot* slot = reading->slot;
  const Range range = range_at(slot, number);
  if ((slot->restoring.without_image >> number & 1) == 0) {
    reading->chunks = &range.chunks;
    if (const char* damage = try_to_read(read_image, reading)) reading->image.damage = damage;
    reading->chunks = nullptr;
  }
  if (reading->image.damage != nullptr) {
    warn_damaged(slot, reading->relation, "image", reading->image.damage);
    reading->image.damage = nullptr;
    slot->restoring.image_rows = 0;
    if (slot->restoring.ranges > 1) {
      empty_used_slice(slot, range.slices.first, nullptr);
      return false;
    }
    empty_slices(reading->block, range.slices);
  }
  slot->restoring.image_rows_read = reading->image.read;
  for (uint64 i = log.starts[number]; i < log.starts[number + 1]; ++i)
    replay_change(slot, reading->block, log.changes[i]);
  end_range(slot, number);
  return true;
}

void on_error(int, Datum slot) {
  const NoRaise marked;
  end_restoring(reinterpret_cast<FilterSlot*>(DatumGetPointer(slot)));
}

// False: slices that lacked a chunk are empty, and the log must be read again.
bool check_rows(const StateReading& reading) {
  FilterSlot* slot = reading.slot;
  Restoring* restoring = &slot->restoring;
  if (restoring->image_rows == 0 || restoring->image_rows == restoring->image_rows_read)
    return true;
  restoring->image_rows = 0;
  warn_damaged(slot, reading.relation, "image", "Chunks are missing.");
  bool are_sound = true;
  for (uint32 i = 0; i < block_of(slot)->parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    are_sound &= !empty_used_slice(slot, i, is_slice_sound);
  }
  return are_sound;
}

// Does a session wait for a lock that conflicts with all others? A failed request of our own does
// not tell: since PostgreSQL 17 a session that holds a lock on the relation is not queued behind
// it.
bool is_awaited_alone(Oid relation) {
  LOCKTAG tag;
  SET_LOCKTAG_RELATION(tag, MyDatabaseId, relation);
  LWLock* partition = LockHashPartitionLock(LockTagHashCode(&tag));
  const LockHeld held(partition, LW_SHARED);
  for (uint32 i = 0; i < ProcGlobal->allProcCount; ++i) {
    const volatile PGPROC& session = ProcGlobal->allProcs[i];
    const LOCK* lock = session.waitLock;  // of another partition, it may be gone at any time
    if (lock != nullptr && session.waitLockMode >= ExclusiveLock &&
        memcmp(&lock->tag, &tag, sizeof tag) == 0)
      return true;
  }
  return false;
}

// Others want the filter for themselves, and nobody waits for a range.
bool is_to_give_way(FilterSlot* slot) {
  return is_restore_worker && !is_any_wanted(slot) && is_awaited_alone(slot->relation);
}

// The ranges of these bits. False: there is more to do, with the log as it is then.
bool restore_missing(StateReading* reading, const LoggedChanges& log, uint64 ranges) {
  FilterSlot* slot = reading->slot;
  bool goes_on = true;  // with this log
  while (goes_on && (pg_atomic_read_u64(&slot->restoring.missing) & ranges) != 0) {
    CHECK_FOR_INTERRUPTS();
    if (is_to_give_way(slot)) give_way();
    goes_on = restore_range(reading, log, next_range(slot));
    stop_at(FaultPoint::restore_range);
  }
  return goes_on && (!is_whole(slot) || check_rows(*reading));
}

// It is being dropped.
void empty_missing(FilterSlot* slot) {
  while (!is_whole(slot)) {
    const uint32 range = next_range(slot);
    empty_slices(block_of(slot), range_at(slot, range).slices);
    end_range(slot, range);
  }
}

// As the one who began would have gone on, at least with `ranges`: of what has come to the log
// since, nothing belongs to a range that is missing, for then somebody would have waited for it.
bool go_on(FilterSlot* slot, const FilterRelation* relation, uint64 ranges) {
  StateReading reading;
  if (!begin_reading(&reading, slot, relation, "restoring")) {
    empty_missing(slot);
    return true;
  }
  reading.block = block_of(slot);
  reading.snapshot = register_latest_snapshot();
  if (const char* damage = try_to_read(read_log, &reading))
    warn_damaged(slot, relation, "log", damage);
  reading.image.saved = slot->saved.last_saved;
  reading.image.read = slot->restoring.image_rows_read;
  reading.progress->begin(
      "reading image", static_cast<uint64>(Max(slot->restoring.image_rows - reading.image.read, 0)),
      "rows");
  const bool is_done = restore_missing(&reading, collect_changes(reading, PG_INT64_MIN), ranges);
  if (is_done && is_whole(slot)) slot->saved.restored = GetCurrentTimestamp();
  end_reading(&reading);
  return is_done;
}

// Begins by first().
template <typename First>
void restore_rest(FilterSlot* slot, const FilterRelation* relation, uint64 ranges,
                  const First& first) {
  PG_ENSURE_ERROR_CLEANUP(on_error, PointerGetDatum(slot));
  {
    for (bool is_done = first(); !is_done;) is_done = go_on(slot, relation, ranges);
  }
  PG_END_ENSURE_ERROR_CLEANUP(on_error, PointerGetDatum(slot));
  end_restoring(slot);
}

// How many ranges a slice makes.
uint32 ranges_of_slice(const Parameters& parameters) {
  return static_cast<uint32>(
      Min(uint64{Max(kMostRanges / parameters.slices, 1u)}, chunks_of(parameters.slice_bytes)));
}

// Reads the first chunk of each slice. False: a key uses more than a line, or one is damaged.
bool read_counters(StateReading* reading) {
  const Parameters& parameters = reading->block->parameters;
  const uint64 each = chunks_of(parameters.slice_bytes);
  const int32 read = reading->image.read;
  bool has_lines = true;
  for (uint32 i = 0; has_lines && i < parameters.slices; ++i) {
    const auto first = static_cast<int32>(1 + i * each);
    const StateScan::Chunks chunks = {first, first};
    reading->chunks = &chunks;
    has_lines = try_to_read(read_image, reading) == nullptr && reading->image.damage == nullptr &&
                uses_one_line(parameters, *slice_at(reading->block, i).state);
  }
  reading->chunks = nullptr;
  if (!has_lines) reading->image.read = read;
  return has_lines;
}

}  // namespace

bool can_read_by_ranges(const StateReading& reading) {
  const Parameters& parameters = reading.block->parameters;
  return parameters.k1 == 0 && parameters.slicing == Slicing::horizontal &&
         reading.played == nullptr && !reading.has_prepared && reading.log.damaged == 0 &&
         reading.log.bytes <= kLongLog && has_image_order(reading.tables.images);
}

bool divide_into_ranges(StateReading* reading, uint32 least) {
  const Parameters& parameters = reading->block->parameters;
  Restoring* restoring = &reading->slot->restoring;
  restoring->ranges = ranges_of_slice(parameters);
  restoring->without_image = 0;
  if (restoring->ranges > 1 && !read_counters(reading)) restoring->ranges = 1;
  return reading->image.damage == nullptr && count_ranges(reading->slot) >= least;
}

uint32 range_of_key(const FilterSlot* slot, uint64 hash) {
  const Header* block = block_of(slot);
  const Parameters& parameters = block->parameters;
  const uint32 slice = slice_of(parameters, hash), parts = slot->restoring.ranges;
  if (parts == 1) return part_with(slice, parameters.slices, count_ranges(slot));
  return slice * parts +
         part_with(line_of_key(block, hash) / kRowData, chunks_of(parameters.slice_bytes), parts);
}

void restore_by_ranges(StateReading* reading, int64 first_row, const Opening* opening) {
  const LoggedChanges log = collect_changes(*reading, first_row);
  reading->slot->restoring.image_rows = reading->image.chunks;
  reading->slot->restoring.image_rows_read = reading->image.read;
  begin_ranges(reading->slot, count_ranges(reading->slot));
  opening->open(opening->arg);
  if (opening->leaves_rest) return end_restoring(reading->slot);
  restore_rest(reading->slot, reading->relation, PG_UINT64_MAX,
               [&] { return restore_missing(reading, log, PG_UINT64_MAX); });
}

// One a second, however many sessions take turns.
static void start_worker(FilterSlot* slot) {
  const auto now = static_cast<uint64>(monotonic_us());
  uint64 next = pg_atomic_read_u64(&slot->saved.next_worker);
  if (now >= next &&
      pg_atomic_compare_exchange_u64(&slot->saved.next_worker, &next, now + USECS_PER_SEC))
    start_restore_worker(MyDatabaseId, slot->relation);
}

// A session that goes on with it reads what it needs itself, and leaves the rest to a worker.
void await_slices(FilterSlot* slot, const FilterRelation* relation, uint64 ranges) {
  const bool has_worker = restore_workers > 0 && !is_restore_worker;
  if (wait_for_ranges(slot, ranges)) return;
  restore_rest(slot, relation, has_worker ? ranges : PG_UINT64_MAX, [] { return false; });
  if (has_worker && !is_whole(slot)) start_worker(slot);
}

// ---- workers ------------------------------------------------------------------------------------

bool is_restore_worker = false, opens_early = false;

BackgroundWorker make_launcher() {
  return make_worker("streamfilter_restore_launcher", "streamfilter restore launcher");
}

void start_restore_launcher_once() {
  if (restore_workers == 0 || !IsUnderPostmaster ||
      pg_atomic_exchange_u32(&shared_state->launched, 1) != 0)
    return;
  BackgroundWorker worker = make_launcher();
  RegisterDynamicBackgroundWorker(&worker, nullptr);
}

BackgroundWorkerHandle* start_restore_worker(Oid database, Oid filter) {
  if (restore_workers == 0 || !IsUnderPostmaster) return nullptr;
  BackgroundWorker worker = make_worker("streamfilter_restore_worker", "streamfilter restore");
  worker.bgw_main_arg = ObjectIdGetDatum(database);
  memcpy(worker.bgw_extra, &filter, sizeof filter);
  worker.bgw_notify_pid = MyProcPid;
  BackgroundWorkerHandle* handle = nullptr;
  return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : nullptr;
}

void give_way() {
  ereport(ERROR, errcode(kGivesWay), errmsg("canceling statement due to lock timeout"));
}

static void end_soon(SIGNAL_ARGS) {
  const int before = errno;
  ShutdownRequestPending = true;
  QueryCancelPending = true;
  InterruptPending = true;
  SetLatch(MyLatch);
  errno = before;
}

void run_worker(void (*work)(Datum), Datum arg) {
  PG_TRY();
  { work(arg); }
  PG_CATCH();
  {
    if (!ShutdownRequestPending) PG_RE_THROW();
  }
  PG_END_TRY();
  proc_exit(0);
}

// The default handler would end the process at once, even within a critical section.
void connect_worker(Oid database) {
  pqsignal(SIGTERM, end_soon);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
}

bool is_running(BackgroundWorkerHandle* worker) {
  pid_t pid;
  const BgwHandleStatus status = GetBackgroundWorkerPid(worker, &pid);
  return status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED;
}

}  // namespace streamfilter::pg
