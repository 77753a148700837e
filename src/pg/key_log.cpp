#include "streamfilter/pg/pg.hpp"

extern "C" {
#include "port/pg_bitutils.h"
}

#include "streamfilter/core/hash.hpp"
#include "streamfilter/pg/key_log.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint32 kFirstIndex = 128;
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

// Keys may be numbers that are no hashes (fingerprint 'integer').
uint32 home_of(const KeyLog* log, uint64 hash) {
  return static_cast<uint32>(mix64(hash)) & (log->index_size - 1);
}

// Where the index has the key, or the free place where it would be.
uint32 probe(const KeyLog* log, uint64 hash) {
  uint32 at = home_of(log, hash);
  while (log->index[at] != 0 && entry_at(log, log->index[at] - 1)->hash != hash)
    at = (at + 1) & (log->index_size - 1);
  return at;
}

void grow_index(KeyLog* log) {
  uint32* old = log->index;
  const uint32 old_size = log->index_size;
  auto* index = static_cast<uint32*>(MemoryContextAllocExtended(
      log->memory, sizeof(uint32) * 2 * static_cast<Size>(old_size),
      MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  log->index = index;
  log->index_size = 2 * old_size;
  for (uint32 i = 0; i < old_size; ++i)
    if (old[i] != 0) index[probe(log, entry_at(log, old[i] - 1)->hash)] = old[i];
  pfree(old);
}

// Frees a place without breaking the runs behind it.
void remove_from_index(KeyLog* log, uint32 hole) {
  const uint32 mask = log->index_size - 1;
  for (uint32 at = (hole + 1) & mask; log->index[at] != 0; at = (at + 1) & mask) {
    const uint32 home = home_of(log, entry_at(log, log->index[at] - 1)->hash);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    log->index[hole] = log->index[at];
    hole = at;
  }
  log->index[hole] = 0;
  --log->indexed;
}

}  // namespace

void init_log(KeyLog* log, MemoryContext memory, bool has_roles) {
  memset(log, 0, sizeof *log);
  log->memory = memory;
  log->has_roles = has_roles;
  log->last_reset = log->last_merge = kNoEntry;
  log->index_size = kFirstIndex;
  log->index = static_cast<uint32*>(MemoryContextAllocZero(memory, sizeof(uint32) * kFirstIndex));
}

void reserve_change(KeyLog* log) {
  if (log->count >= kMostChanges)
    ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
            errmsg("a transaction cannot change a filter more than %u times", kMostChanges),
            errhint("Commit in between."));
  const Place place = place_of(log->count);
  const Size entries = static_cast<Size>(KeyLog::kFirst) << place.level;
  if (log->levels[place.level] == nullptr)
    log->levels[place.level] = static_cast<LogEntry*>(
        MemoryContextAllocHuge(log->memory, sizeof(LogEntry) * entries));
  if (log->has_roles && log->roles[place.level] == nullptr)
    log->roles[place.level] = static_cast<KeyLog::Roles*>(
        MemoryContextAllocHuge(log->memory, sizeof(KeyLog::Roles) * entries));
  if (log->indexed + 1 > log->index_size / 4 * 3) grow_index(log);
}

LogEntry* append_change(KeyLog* log, Change change, const Element& element) {
  const uint32 position = log->count++;
  const Place place = place_of(position);
  LogEntry* entry = &log->levels[place.level][place.offset];
  if (log->has_roles) log->roles[place.level][place.offset] = {element.importance, element.time};
  entry->hash = element.hash;
  entry->change = static_cast<uint32>(change);
  entry->announced = 0;
  entry->owner = 0;
  if (is_indexed(entry)) {
    uint32* at = &log->index[probe(log, element.hash)];
    entry->previous = *at == 0 ? kNoEntry : *at - 1;
    log->indexed += *at == 0;
    *at = position + 1;
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
    const uint32 at = probe(log, entry->hash);
    if (entry->previous == kNoEntry)
      remove_from_index(log, at);
    else
      log->index[at] = entry->previous + 1;
  } else if (entry->change == static_cast<uint32>(Change::reset)) {
    log->last_reset = entry->previous;
  } else {
    log->last_merge = entry->previous;
  }
  --log->count;
}

uint32 find_change(const KeyLog* log, uint64 hash) {
  return log->index[probe(log, hash)] - 1;  // 0, unused, gives kNoEntry
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
