#include "pg/server/postgres.hpp"

#include <initializer_list>

#include "core/base/hash.hpp"
#include "pg/shmem/statistics.hpp"

namespace streamfilter::pg {
namespace {

uint64 hash_of(const char* name, uint64 position = 0) {
  return hash_bytes(name, strlen(name), position);
}

// Calls visit(hash of its name, value).
template <typename Visit>
void for_each_counter(Statistics* stats, Visit&& visit) {
  for (int i = 0; i < RowCounts::kCount; ++i)
    visit(hash_of(kRowCounters[i].name), &stats->counts.values[i]);
  for (unsigned i = 0; i < kMaxRanks; ++i) visit(hash_of("found_at", i), &stats->found_at[i]);
  for (unsigned i = 0; i <= kFillSteps; ++i) visit(hash_of("missed_at", i), &stats->missed_at[i]);
}

template <typename Visit>
void for_each_value(Statistics* stats, Visit&& visit) {
  for_each_counter(stats, visit);
  visit(hash_of("created"), &stats->created);
  visit(hash_of("last_reset"), &stats->last_reset);
  visit(hash_of("stats_reset"), &stats->stats_reset);
}

}  // namespace

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
