#include "pg/server/postgres.hpp"

extern "C" {
#include "port/pg_bitutils.h"
}

#include <sys/mman.h>

#include "core/base/hash.hpp"
#include "pg/transaction/change_log.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kFirstBits = 7;
// As many as the largest index can tell apart; there are levels for more.
constexpr uint32 kMostChanges = (uint32{1} << 31) / 4 * 3 - 1;
static_assert(kMostChanges < KeyLog::kFirst * ((uint64{1} << KeyLog::kLevels) - 1));

struct Place {
  int level;
  uint32 offset;
};

Place place_of(uint32 position) {
  const int level = pg_leftmost_one_pos32(position / KeyLog::kFirst + 1);
  return {level, position - KeyLog::kFirst * ((1u << level) - 1)};
}

bool is_indexed(const LogEntry* entry) {
  return entry->change != static_cast<uint32>(Change::reset) &&
         entry->change != static_cast<uint32>(Change::merge);
}

// Large pages for large memory that is read at random: most of a lookup's time goes into finding
// its page. Where the system has none, nothing changes.
void* alloc_large(MemoryContext memory, Size bytes) {
  constexpr Size kLargePage = 2 * 1024 * 1024;
  void* result = MemoryContextAllocExtended(memory, bytes, MCXT_ALLOC_HUGE);
#ifdef MADV_HUGEPAGE
  if (bytes >= kLargePage) {
    auto* first = reinterpret_cast<char*>(TYPEALIGN(kLargePage, result));
    auto* last =
        reinterpret_cast<char*>(TYPEALIGN_DOWN(kLargePage, static_cast<char*>(result) + bytes));
    if (last > first) madvise(first, static_cast<Size>(last - first), MADV_HUGEPAGE);
  }
#endif
  return result;
}

// Keys may be numbers that are no hashes (fingerprint 'integer').
uint32 tag_of(uint64 hash) { return static_cast<uint32>(mix64(hash) >> 32); }

uint32 home_of(const KeyLog* log, uint32 tag) { return tag >> (32 - log->index_bits); }

uint32 last_place(const KeyLog* log) { return (uint32{1} << log->index_bits) - 1; }

uint32 most_indexed(const KeyLog* log) { return last_place(log) / 4 * 3; }

// Keys keep their order, so that old and new index are walked through side by side.
void grow_index(KeyLog* log) {
  IndexPlace* old = log->index;
  const Size old_size = Size{1} << log->index_bits;
  const Size bytes = sizeof(IndexPlace) * 2 * old_size;
  log->index = static_cast<IndexPlace*>(alloc_large(log->memory, bytes));
  memset(static_cast<void*>(log->index), 0, bytes);
  ++log->index_bits;
  const uint32 mask = last_place(log);
  for (Size i = 0; i < old_size; ++i) {
    if (old[i].next == 0) continue;
    uint32 at = home_of(log, old[i].tag);
    while (log->index[at].next != 0) at = (at + 1) & mask;
    log->index[at] = old[i];
  }
  pfree(old);
}

// Frees a place without breaking the runs behind it.
void remove_from_index(KeyLog* log, uint32 hole) {
  const uint32 mask = last_place(log);
  for (uint32 at = (hole + 1) & mask; log->index[at].next != 0; at = (at + 1) & mask) {
    const uint32 home = home_of(log, log->index[at].tag);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    log->index[hole] = log->index[at];
    hole = at;
  }
  log->index[hole].next = 0;
  --log->indexed;
}

}  // namespace

void init_log(KeyLog* log, MemoryContext memory, bool has_roles) {
  memset(log, 0, sizeof *log);
  log->memory = memory;
  log->has_roles = has_roles;
  log->last_reset = log->last_merge = kNoEntry;
  log->index_bits = kFirstBits;
  log->index =
      static_cast<IndexPlace*>(MemoryContextAllocZero(memory, sizeof(IndexPlace) << kFirstBits));
}

void make_room(KeyLog* log) {
  if (log->count >= kMostChanges)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a transaction cannot change a filter more than %u times", kMostChanges),
            errhint("Commit in between."));
  const Place place = place_of(log->count);
  const Size entries = static_cast<Size>(KeyLog::kFirst) << place.level;
  if (log->levels[place.level] == nullptr)
    log->levels[place.level] =
        static_cast<LogEntry*>(alloc_large(log->memory, sizeof(LogEntry) * entries));
  if (log->has_roles && log->roles[place.level] == nullptr)
    log->roles[place.level] =
        static_cast<KeyLog::Roles*>(alloc_large(log->memory, sizeof(KeyLog::Roles) * entries));
  if (log->indexed >= most_indexed(log)) grow_index(log);
  const uint32 unindexed = most_indexed(log) - log->indexed;
  const uint32 unused = static_cast<uint32>(entries) - place.offset;
  log->room = Min(Min(unused, unindexed), kMostChanges - log->count);
}

LogEntry* append_change(KeyLog* log, Change change, const Element& element, KeySpot spot) {
  const uint32 position = log->count++;
  --log->room;
  const Place place = place_of(position);
  LogEntry* entry = &log->levels[place.level][place.offset];
  if (log->has_roles) log->roles[place.level][place.offset] = {element.importance, element.time};
  entry->hash = element.hash;
  entry->change = static_cast<uint32>(change);
  entry->announced = 0;
  entry->repeated = 0;
  entry->owner = 0;
  if (is_indexed(entry)) {
    if (spot.index_bits != log->index_bits) spot = find_key(log, element.hash);
    entry->previous = spot.last;
    log->indexed += spot.last == kNoEntry;
    if (spot.last != kNoEntry) entry_at(log, spot.last)->repeated = change == Change::repeat;
    log->index[spot.place] = {position + 1, spot.tag};
  } else {
    uint32* last = change == Change::reset ? &log->last_reset : &log->last_merge;
    entry->previous = *last;
    *last = position;
  }
  return entry;
}

void undo_change(KeyLog* log) {
  const LogEntry* entry = entry_at(log, log->count - 1);
  if (is_indexed(entry)) {
    const uint32 at = find_key(log, entry->hash).place;
    if (entry->previous == kNoEntry) {
      remove_from_index(log, at);
    } else {
      log->index[at].next = entry->previous + 1;
      entry_at(log, entry->previous)->repeated = 0;
    }
  } else if (entry->change == static_cast<uint32>(Change::reset)) {
    log->last_reset = entry->previous;
  } else {
    log->last_merge = entry->previous;
  }
  --log->count;
  log->room = 0;
}

void prefetch_place(const KeyLog* log, uint64 hash, Prefetches& prefetches) {
  prefetches.add(&log->index[home_of(log, tag_of(hash))]);
}

void prefetch_change(const KeyLog* log, uint64 hash, Prefetches& prefetches) {
  const uint32 tag = tag_of(hash), mask = last_place(log);
  uint32 at = home_of(log, tag);
  while (log->index[at].next != 0 && log->index[at].tag != tag) at = (at + 1) & mask;
  if (log->index[at].next != 0) prefetches.add(entry_at(log, log->index[at].next - 1));
}

KeySpot find_key(const KeyLog* log, uint64 hash) {
  const uint32 tag = tag_of(hash), mask = last_place(log);
  uint32 at = home_of(log, tag);
  for (;; at = (at + 1) & mask) {
    const IndexPlace& place = log->index[at];
    if (place.next == 0 || (place.tag == tag && entry_at(log, place.next - 1)->hash == hash))
      return {place.next - 1, tag, at, log->index_bits};  // 0, unused, gives kNoEntry
  }
}

LogEntry* entry_at(const KeyLog* log, uint32 position) {
  const Place place = place_of(position);
  return &log->levels[place.level][place.offset];
}

Element element_at(const KeyLog* log, uint32 position) {
  const Place place = place_of(position);
  Element element;
  element.hash = log->levels[place.level][place.offset].hash;
  if (log->has_roles) {
    element.importance = log->roles[place.level][place.offset].importance;
    element.time = log->roles[place.level][place.offset].time;
  }
  return element;
}

}  // namespace streamfilter::pg
