#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"
}

#include "pg/shmem/server_health.hpp"

namespace streamfilter::pg {
namespace {

constexpr char kTranche[] = "streamfilter_servers";
constexpr int kMostServers = 256;
constexpr long kMostCounts = 4096;
constexpr uint32 kWholeFilter = PG_UINT32_MAX;
constexpr int kFirstPause = 1000;  // ms
constexpr int kMostDoublings = 6;
constexpr int kLongestPause = 60'000;

struct Servers {
  LWLock* lock;  // for new places in `servers`, and for the counts
  int count;
  ServerState servers[kMostServers];
};

struct CountKey {
  Oid database;
  Oid relation;
  uint32 slice;
};
struct CountEntry {
  CountKey key;
  SliceCounts slice;
  FilterCounts filter;
};

Servers* servers = nullptr;
HTAB* counts = nullptr;

CountEntry* find_counts(Oid relation, uint32 slice, HASHACTION action) {
  const CountKey key = {MyDatabaseId, relation, slice};
  bool found;
  if (action == HASH_ENTER_NULL && hash_get_num_entries(counts) >= kMostCounts) action = HASH_FIND;
  auto* entry = static_cast<CountEntry*>(hash_search(counts, &key, action, &found));
  if (entry != nullptr && !found) {
    entry->slice = {};
    entry->filter = {};
  }
  return entry;
}

bool is_of(const CountKey* key, Oid database, Oid relation) {
  return key->database == database && (relation == InvalidOid || key->relation == relation);
}

}  // namespace

ServerState* server_state(Oid server) {
  if (servers == nullptr) return nullptr;
  ServerState* result = nullptr;
  LWLockAcquire(servers->lock, LW_EXCLUSIVE);
  for (int i = 0; i < servers->count && result == nullptr; ++i)
    if (servers->servers[i].database == MyDatabaseId && servers->servers[i].server == server)
      result = &servers->servers[i];
  if (result == nullptr && servers->count < kMostServers) {
    result = &servers->servers[servers->count++];
    result->database = MyDatabaseId;
    result->server = server;
  }
  LWLockRelease(servers->lock);
  return result;
}

bool may_try(ServerState* state, int patience) {
  if (!is_lost(state)) return true;
  uint64 retry_at = pg_atomic_read_u64(&state->retry_at);
  const TimestampTz now = GetCurrentTimestamp();
  if (static_cast<TimestampTz>(retry_at) > now) return false;
  return pg_atomic_compare_exchange_u64(
      &state->retry_at, &retry_at, static_cast<uint64>(TimestampTzPlusMilliseconds(now, patience)));
}

void note_lost(ServerState* state) {
  if (state == nullptr) return;
  const TimestampTz now = GetCurrentTimestamp();
  uint64 none = 0;
  const bool first =
      pg_atomic_compare_exchange_u64(&state->lost_since, &none, static_cast<uint64>(now));
  // Sessions that lose it at the same time count as one failure.
  if (!first && static_cast<TimestampTz>(pg_atomic_read_u64(&state->retry_at)) > now &&
      pg_atomic_read_u32(&state->failures) == 1)
    return;
  const uint32 failures = pg_atomic_fetch_add_u32(&state->failures, 1);
  const int pause =
      Min(kFirstPause << Min(static_cast<int>(failures), kMostDoublings), kLongestPause);
  pg_atomic_write_u64(&state->retry_at,
                      static_cast<uint64>(TimestampTzPlusMilliseconds(now, pause)));
}

void note_reached(ServerState* state) {
  if (!is_lost(state)) return;
  pg_atomic_write_u32(&state->failures, 0);
  pg_atomic_write_u64(&state->lost_since, 0);
}

void add_slice_counts(Oid relation, uint32 slice, const SliceCounts& added) {
  if (counts == nullptr) return;
  LWLockAcquire(servers->lock, LW_EXCLUSIVE);
  if (CountEntry* entry = find_counts(relation, slice, HASH_ENTER_NULL)) {
    entry->slice.answered += added.answered;
    entry->slice.unanswered += added.unanswered;
    entry->slice.messages += added.messages;
    entry->slice.sent += added.sent;
    entry->slice.received += added.received;
  }
  LWLockRelease(servers->lock);
}

void add_filter_counts(Oid relation, const FilterCounts& added) {
  if (counts == nullptr) return;
  LWLockAcquire(servers->lock, LW_EXCLUSIVE);
  if (CountEntry* entry = find_counts(relation, kWholeFilter, HASH_ENTER_NULL)) {
    entry->filter.tested += added.tested;
    entry->filter.accepted += added.accepted;
    entry->filter.discarded += added.discarded;
    entry->filter.unremembered += added.unremembered;
  }
  LWLockRelease(servers->lock);
}

bool has_counts(Oid database, Oid relation) {
  if (counts == nullptr) return false;
  bool found = false;
  LWLockAcquire(servers->lock, LW_SHARED);
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, counts);
  while (const auto* entry = static_cast<CountEntry*>(hash_seq_search(&scan)))
    found |= is_of(&entry->key, database, relation);
  LWLockRelease(servers->lock);
  return found;
}

void forget_counts(Oid database, Oid relation) {
  if (counts == nullptr) return;
  LWLockAcquire(servers->lock, LW_EXCLUSIVE);
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, counts);
  while (auto* entry = static_cast<CountEntry*>(hash_seq_search(&scan)))
    if (is_of(&entry->key, database, relation))
      hash_search(counts, &entry->key, HASH_REMOVE, nullptr);
  LWLockRelease(servers->lock);
}

SliceCounts read_slice_counts(Oid relation, uint32 slice) {
  SliceCounts result{};
  if (counts == nullptr) return result;
  LWLockAcquire(servers->lock, LW_SHARED);
  if (const CountEntry* entry = find_counts(relation, slice, HASH_FIND)) result = entry->slice;
  LWLockRelease(servers->lock);
  return result;
}

FilterCounts read_filter_counts(Oid relation) {
  FilterCounts result{};
  if (counts == nullptr) return result;
  LWLockAcquire(servers->lock, LW_SHARED);
  if (const CountEntry* entry = find_counts(relation, kWholeFilter, HASH_FIND))
    result = entry->filter;
  LWLockRelease(servers->lock);
  return result;
}

void request_lost_servers() {
  RequestAddinShmemSpace(
      add_size(MAXALIGN(sizeof(Servers)), hash_estimate_size(kMostCounts, sizeof(CountEntry))));
  RequestNamedLWLockTranche(kTranche, 1);
}

void start_lost_servers() {
  bool found;
  servers = static_cast<Servers*>(ShmemInitStruct("streamfilter servers", sizeof(Servers), &found));
  if (!found) {
    memset(static_cast<void*>(servers), 0, sizeof *servers);
    servers->lock = &GetNamedLWLockTranche(kTranche)->lock;
    for (ServerState& state : servers->servers) {
      pg_atomic_init_u64(&state.lost_since, 0);
      pg_atomic_init_u64(&state.retry_at, 0);
      pg_atomic_init_u32(&state.failures, 0);
    }
  }
  HASHCTL control = {};
  control.keysize = sizeof(CountKey);
  control.entrysize = sizeof(CountEntry);
  counts = ShmemInitHash("streamfilter slice counts", kMostCounts, kMostCounts, &control,
                         HASH_ELEM | HASH_BLOBS);
}

}  // namespace streamfilter::pg
