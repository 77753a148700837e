#include "pg/server/postgres.hpp"

#include "pg/server/monotonic.hpp"
#include "pg/shmem/server_health.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kTranche[] = "streamfilter_servers";
constexpr int kMaxUnreachable = 256;
constexpr long kMaxCounts = 4096;
constexpr uint32 kWholeFilter = PG_UINT32_MAX;
// Forgets a server that nobody has tried for so long; it may have been dropped.
constexpr int kForgotten = 600'000;  // ms

struct Unreachable {
  Oid database;
  Oid server;  // InvalidOid: unused
  TimestampTz since;
  int64 retry_at;  // in monotonic_us()
};

struct Servers {
  LWLock* lock;            // for all below, and for the counts
  pg_atomic_uint32 count;  // of unreachable servers; also read without the lock
  uint64 turn;             // ascends with additions to the counts
  Unreachable unreachable[kMaxUnreachable];
};

struct CountKey {
  Oid database;
  Oid relation;
  uint32 slice;
};
struct CountEntry {
  CountKey key;
  SliceCounts slice;
  FilterWork filter;
  PartState part;     // of the server with this number
  uint64 last_added;  // turn of the last addition
};

Servers* servers = nullptr;
HTAB* counts = nullptr;

const CountEntry* find_counts(Oid relation, uint32 slice) {
  const CountKey key = {MyDatabaseId, relation, slice};
  return static_cast<CountEntry*>(hash_search(counts, &key, HASH_FIND, nullptr));
}

// Otherwise counts of a filter whose creation was rolled back would stay for ever.
void evict_oldest_counts() {
  const CountEntry* oldest = nullptr;
  for_each_entry<CountEntry>(counts, [&](const CountEntry* entry) {
    if (oldest == nullptr || entry->last_added < oldest->last_added) oldest = entry;
  });
  hash_search(counts, &oldest->key, HASH_REMOVE, nullptr);
}

CountEntry* promote_counts(const CountKey& key) {
  auto* entry = static_cast<CountEntry*>(hash_search(counts, &key, HASH_FIND, nullptr));
  if (entry == nullptr) {
    if (hash_get_num_entries(counts) >= kMaxCounts) evict_oldest_counts();
    entry = static_cast<CountEntry*>(hash_search(counts, &key, HASH_ENTER_NULL, nullptr));
    if (entry == nullptr) return nullptr;
    entry->slice = {};
    entry->part = {};
    entry->filter = {{}, GetCurrentTimestamp()};
  }
  entry->last_added = ++servers->turn;
  return entry;
}

bool is_of(const CountKey* key, Oid database, Oid relation) {
  return key->database == database && (relation == InvalidOid || key->relation == relation);
}

bool any_unreachable() { return servers != nullptr && pg_atomic_read_u32(&servers->count) > 0; }

int64 after_pause(int64 now) { return now + int64{kRetryPause} * 1000; }

Unreachable* find_unreachable(Oid server) {
  for (Unreachable& entry : servers->unreachable)
    if (entry.server == server && entry.database == MyDatabaseId) return &entry;
  return nullptr;
}

void forget(Unreachable* entry) {
  entry->server = InvalidOid;
  pg_atomic_fetch_sub_u32(&servers->count, 1);
}

// A free entry, or the one that was tried longest ago.
Unreachable* free_entry(int64 now) {
  Unreachable* result = &servers->unreachable[0];
  for (Unreachable& entry : servers->unreachable) {
    if (OidIsValid(entry.server) && now - entry.retry_at > int64{kForgotten} * 1000) forget(&entry);
    if (OidIsValid(result->server) &&
        (!OidIsValid(entry.server) || entry.retry_at < result->retry_at))
      result = &entry;
  }
  if (OidIsValid(result->server)) forget(result);
  return result;
}

}  // namespace

TimestampTz unreachable_since(Oid server) {
  if (!any_unreachable()) return 0;
  const LockHeld held(servers->lock, LW_SHARED);
  const Unreachable* entry = find_unreachable(server);
  return entry != nullptr ? entry->since : 0;
}

bool may_connect(Oid server) {
  if (!any_unreachable()) return true;
  const int64 now = monotonic_us();
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  Unreachable* entry = find_unreachable(server);
  const bool may = entry == nullptr || entry->retry_at <= now;
  if (entry != nullptr && may) entry->retry_at = after_pause(now);
  return may;
}

void note_unreachable(Oid server) {
  if (servers == nullptr) return;
  const int64 now = monotonic_us();
  const TimestampTz since = GetCurrentTimestamp();
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  Unreachable* entry = find_unreachable(server);
  if (entry == nullptr) {
    entry = free_entry(now);
    *entry = {MyDatabaseId, server, since, 0};
    pg_atomic_fetch_add_u32(&servers->count, 1);
  }
  entry->retry_at = after_pause(now);
}

void note_reached(Oid server) {
  if (!any_unreachable() || unreachable_since(server) == 0) return;
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  if (Unreachable* entry = find_unreachable(server)) forget(entry);
}

void add_slice_counts(Oid relation, uint32 slice, const SliceCounts& added) {
  if (slice >= kMaxCountedSlices || counts == nullptr) return;
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  if (CountEntry* entry = promote_counts({MyDatabaseId, relation, slice})) entry->slice += added;
}

void add_filter_counts(Oid relation, const RowCounts& added) {
  if (counts == nullptr) return;
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  if (CountEntry* entry = promote_counts({MyDatabaseId, relation, kWholeFilter}))
    entry->filter.counts += added;
}

void forget_counts(Oid database, Oid relation) {
  if (counts == nullptr) return;
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  for_each_entry<CountEntry>(counts, [=](const CountEntry* entry) {
    if (is_of(&entry->key, database, relation))
      hash_search(counts, &entry->key, HASH_REMOVE, nullptr);
  });
}

void reset_counts(Oid relation) {
  if (counts == nullptr) return;
  const TimestampTz now = GetCurrentTimestamp();
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  for_each_entry<CountEntry>(counts, [=](CountEntry* entry) {
    if (!is_of(&entry->key, MyDatabaseId, relation)) return;
    entry->filter = {{}, now};
    entry->slice = {};
  });
}

SliceCounts read_slice_counts(Oid relation, uint32 slice) {
  SliceCounts result{};
  if (counts == nullptr) return result;
  const LockHeld held(servers->lock, LW_SHARED);
  if (const CountEntry* entry = find_counts(relation, slice)) result = entry->slice;
  return result;
}

FilterWork read_filter_work(Oid relation) {
  FilterWork result{};
  if (counts == nullptr) return result;
  const LockHeld held(servers->lock, LW_SHARED);
  if (const CountEntry* entry = find_counts(relation, kWholeFilter)) result = entry->filter;
  return result;
}

bool has_gone_back(Oid relation, uint32 server, PartState now, bool made) {
  constexpr int64 kEmpty = -1;  // it has no life yet
  if (server >= kMaxCountedSlices || counts == nullptr) return false;
  const LockHeld held(servers->lock, LW_EXCLUSIVE);
  CountEntry* entry = promote_counts({MyDatabaseId, relation, server});
  if (entry == nullptr) return false;
  if (now.life == 0) now.life = kEmpty;
  const PartState before = entry->part;
  const bool same = before.life == now.life;
  const bool fewer = !same || (now.number != 0 && now.number < before.number);
  const bool back = before.life != 0 && (made || (before.life != kEmpty && fewer));
  entry->part = same && now.number == 0 ? before : now;
  entry->slice[SliceCount::replaced] += back;
  return back;
}

void visit_filter_work(void (*visit)(Oid database, Oid relation, const FilterWork& work, void* arg),
                       void* arg) {
  if (counts == nullptr) return;
  for_each_entry<CountEntry>(counts, [=](const CountEntry* entry) {
    if (entry->key.slice == kWholeFilter)
      visit(entry->key.database, entry->key.relation, entry->filter, arg);
  });
}

void put_filter_work(Oid database, Oid relation, const FilterWork& work) {
  if (CountEntry* entry = promote_counts({database, relation, kWholeFilter})) entry->filter = work;
}

void request_server_health() {
  RequestAddinShmemSpace(
      add_size(MAXALIGN(sizeof(Servers)), hash_estimate_size(kMaxCounts, sizeof(CountEntry))));
  RequestNamedLWLockTranche(kTranche, 1);
}

void start_server_health() {
  if (attach_shared(servers, "streamfilter servers")) {
    memset(static_cast<void*>(servers), 0, sizeof *servers);
    servers->lock = &GetNamedLWLockTranche(kTranche)->lock;
  }
  counts = attach_hash_table<CountKey, CountEntry>("streamfilter slice counts", kMaxCounts);
}

}  // namespace streamfilter::pg
