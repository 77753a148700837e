// Counters are atomics, incremented under the shared lock; entries come and go under the exclusive
// one.
#include "pg/server/postgres.hpp"

#include <initializer_list>

#include "pg/server/hooks.hpp"
#include "pg/shmem/trigger_counts.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kTranche[] = "streamfilter_triggers";
constexpr long kMaxTriggers = 4096;
constexpr int64 kIdle = USECS_PER_HOUR;
constexpr int64 kPause = USECS_PER_MINUTE;

struct CountKey {
  Oid database;
  Oid trigger;
};

struct CountEntry {
  CountKey key;
  Oid filter;
  TimestampTz since;
  pg_atomic_uint64 last_added;  // time
  SharedTriggerCounts counts;
};

struct SharedCounts {
  LWLock* lock;
  TimestampTz since;       // triggers without an entry have done nothing since, unless
  bool full;               // some have found no room, or were evicted
  TimestampTz look_after;  // nobody is idle before that
};

SharedCounts* shared = nullptr;
HTAB* entries = nullptr;

HTAB* all_pending = nullptr;
PendingTriggerCounts* dirty = nullptr;

CountEntry* find_counts(Oid trigger) {
  const CountKey key = {MyDatabaseId, trigger};
  return static_cast<CountEntry*>(hash_search(entries, &key, HASH_FIND, nullptr));
}

// Evicts an entry that has not counted for long enough.
bool evict_idle(TimestampTz now) {
  if (now < shared->look_after) return false;
  CountEntry* oldest = nullptr;
  uint64 oldest_added = 0;
  for_each_entry<CountEntry>(entries, [&](CountEntry* entry) {
    const uint64 added = pg_atomic_read_u64(&entry->last_added);
    if (oldest != nullptr && added >= oldest_added) return;
    oldest = entry;
    oldest_added = added;
  });
  if (now - static_cast<TimestampTz>(oldest_added) < kIdle) {
    shared->look_after = now + kPause;
    return false;
  }
  hash_search(entries, &oldest->key, HASH_REMOVE, nullptr);
  return true;
}

void clear(CountEntry* entry, TimestampTz now) {
  entry->since = now;
  entry->counts.set({});
}

// Needs the exclusive lock; nullptr: there is no room.
CountEntry* make_entry(const PendingTriggerCounts* pending) {
  if (CountEntry* entry = find_counts(pending->trigger)) return entry;
  const TimestampTz now = GetCurrentTimestamp();
  if (hash_get_num_entries(entries) >= kMaxTriggers) {
    shared->full = true;
    if (!evict_idle(now)) return nullptr;
  }
  const CountKey key = {MyDatabaseId, pending->trigger};
  auto* entry = static_cast<CountEntry*>(hash_search(entries, &key, HASH_ENTER_NULL, nullptr));
  if (entry == nullptr) return nullptr;
  pg_atomic_init_u64(&entry->last_added, 0);
  entry->counts.init();
  entry->since = shared->full ? now : shared->since;
  return entry;
}

void add(CountEntry* entry, const PendingTriggerCounts* pending) {
  entry->filter = pending->filter;
  pg_atomic_write_u64(&entry->last_added, static_cast<uint64>(GetCurrentStatementStartTimestamp()));
  entry->counts.add(pending->counts);
}

void flush(const PendingTriggerCounts* pending) {
  const auto add_to = [pending](CountEntry* entry) {
    if (entry != nullptr) add(entry, pending);
    return entry != nullptr;
  };
  if (const LockHeld held(shared->lock, LW_SHARED); add_to(find_counts(pending->trigger))) return;
  const LockHeld held(shared->lock, LW_EXCLUSIVE);
  add_to(make_entry(pending));
}

}  // namespace

PendingTriggerCounts* pending_trigger_counts(Oid trigger, Oid filter) {
  if (all_pending == nullptr)
    all_pending = make_hash_table<Oid, PendingTriggerCounts>("streamfilter triggers", 16);
  bool found;
  auto* pending =
      static_cast<PendingTriggerCounts*>(hash_search(all_pending, &trigger, HASH_ENTER, &found));
  if (!found) *pending = {trigger, filter, {}, nullptr, false};
  pending->filter = filter;
  return pending;
}

TriggerCounts* note_dirty(PendingTriggerCounts* pending) {
  transaction_uses_filters = true;
  pending->dirty = true;
  pending->next_dirty = dirty;
  dirty = pending;
  return &pending->counts;
}

void flush_trigger_counts() {
  while (dirty != nullptr) {
    PendingTriggerCounts* pending = dirty;
    dirty = pending->next_dirty;
    pending->dirty = false;
    if (shared != nullptr) flush(pending);
    pending->counts = {};
  }
}

bool read_trigger_counts(Oid trigger, TriggerCounts* counts, TimestampTz* since) {
  *counts = {};
  *since = 0;
  if (shared == nullptr) return false;
  const LockHeld held(shared->lock, LW_SHARED);
  CountEntry* entry = find_counts(trigger);
  if (entry != nullptr) *counts = entry->counts.read();
  *since = entry != nullptr ? entry->since : shared->since;
  return entry != nullptr || !shared->full;
}

void forget_trigger_counts(Oid database, Oid trigger) {
  if (shared == nullptr) return;
  const LockHeld held(shared->lock, LW_EXCLUSIVE);
  if (OidIsValid(trigger)) {
    const CountKey key = {database, trigger};
    hash_search(entries, &key, HASH_REMOVE, nullptr);
  } else {
    for_each_entry<CountEntry>(entries, [=](const CountEntry* entry) {
      if (entry->key.database == database) hash_search(entries, &entry->key, HASH_REMOVE, nullptr);
    });
  }
}

void reset_trigger_counts(Oid filter) {
  if (shared == nullptr) return;
  const TimestampTz now = GetCurrentTimestamp();
  const LockHeld held(shared->lock, LW_EXCLUSIVE);
  for_each_entry<CountEntry>(entries, [=](CountEntry* entry) {
    if (entry->key.database == MyDatabaseId && (!OidIsValid(filter) || entry->filter == filter))
      clear(entry, now);
  });
}

void request_trigger_counts() {
  RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(SharedCounts)),
                                  hash_estimate_size(kMaxTriggers, sizeof(CountEntry))));
  RequestNamedLWLockTranche(kTranche, 1);
}

void start_trigger_counts() {
  if (attach_shared(shared, "streamfilter triggers")) {
    shared->lock = &GetNamedLWLockTranche(kTranche)->lock;
    shared->since = GetCurrentTimestamp();
    shared->full = false;
    shared->look_after = 0;
  }
  entries = attach_hash_table<CountKey, CountEntry>("streamfilter trigger counts", kMaxTriggers);
}

// ---- counts of filters --------------------------------------------------------------------------

static uint64 hash_of(const char* name, uint64 position = 0) {
  return hash_bytes(name, strlen(name), position);
}

// Calls visit(hash of its name, value).
template <typename Visit>
static void for_each_counter(Statistics* stats, Visit&& visit) {
  for (int i = 0; i < RowCounts::kCount; ++i)
    visit(hash_of(RowCounts::kInfo[i].name), &stats->counts.values[i]);
  for (unsigned i = 0; i < kMaxRanks; ++i) visit(hash_of("found_at", i), &stats->found_at[i]);
  for (unsigned i = 0; i <= kFillSteps; ++i) visit(hash_of("missed_at", i), &stats->missed_at[i]);
}

template <typename Visit>
static void for_each_value(Statistics* stats, Visit&& visit) {
  for_each_counter(stats, visit);
  visit(hash_of("created"), &stats->created);
  visit(hash_of("last_reset"), &stats->last_reset);
  visit(hash_of("stats_reset"), &stats->stats_reset);
}

void start_statistics(Statistics* stats, TimestampTz now) {
  for_each_counter(stats, [](uint64, pg_atomic_uint64* value) { pg_atomic_init_u64(value, 0); });
  for (pg_atomic_uint64* time : {&stats->created, &stats->last_reset, &stats->stats_reset})
    pg_atomic_init_u64(time, static_cast<uint64>(now));
}

void reset_statistics(Statistics* stats, TimestampTz now) {
  for_each_counter(stats, [](uint64, pg_atomic_uint64* value) { pg_atomic_write_u64(value, 0); });
  pg_atomic_write_u64(&stats->stats_reset, static_cast<uint64>(now));
}

void take_over_statistics(Statistics* to, const Statistics& from) {
  to->counts.set(from.counts.read());
  pg_atomic_write_u64(&to->created, pg_atomic_read_u64(&from.created));
  pg_atomic_write_u64(&to->last_reset, pg_atomic_read_u64(&from.last_reset));
  pg_atomic_write_u64(&to->stats_reset, pg_atomic_read_u64(&from.stats_reset));
}

int save_statistics(const Statistics& stats, SavedStatistic* saved) {
  int count = 0;
  for_each_value(const_cast<Statistics*>(&stats), [&](uint64 name, pg_atomic_uint64* value) {
    const uint64 now = pg_atomic_read_u64(value);
    if (now != 0) saved[count++] = {name, now};
  });
  return count;
}

void load_statistics(Statistics* stats, const SavedStatistic* saved, int count) {
  for_each_value(stats, [&](uint64 name, pg_atomic_uint64* value) {
    for (int i = 0; i < count; ++i)
      if (saved[i].name == name) pg_atomic_write_u64(value, saved[i].value);
  });
}

}  // namespace streamfilter::pg
