// All counters, in three tables: of a filter, of a trigger, of a slice on another server. Session
// counts, shared memory, saving, resetting, resizing and views are generated from these. To add a
// counter, add a line anywhere: saved counts go by name. A view shows it in the column of its name,
// and the help is the column's comment (sql/60_views.sql).
#pragma once

extern "C" {
#include "port/atomics.h"
}

namespace streamfilter::pg {

// Name, unit, help (sql/65_metrics.sql); of a filter also kOnlyThere: for a filter on other servers
// they alone count it, so it is unknown here.
#define STREAMFILTER_ROW_COUNTS(COUNT)                                                        \
  COUNT(tested, "rows", "rows and keys it was asked about")                                   \
  COUNT(accepted, "rows", "of these, found new")                                              \
  COUNT(discarded, "rows", "repeats that were discarded or marked")                           \
  COUNT(would_discard, "rows", "repeats that passed in mode shadow")                          \
  COUNT(diverted, "rows", "repeats that were diverted to another table")                      \
  COUNT(ahead, "rows", "events whose time was too far ahead")                                 \
  COUNT(late, "rows", "events that came later than window and lateness: not remembered",      \
        kOnlyThere)                                                                           \
  COUNT(rolled_back, "keys", "keys of transactions that rolled back")                         \
  COUNT(waits, "waits", "waits for another transaction with the same key")                    \
  COUNT(overflowed, "transactions",                                                           \
        "transactions with more keys in flight than there was room for")                      \
  COUNT(passed_overfull, "rows", "repeats that passed because the filter held too much",      \
        kOnlyThere)                                                                           \
  COUNT(unremembered, "transactions", "transactions whose keys other servers have not taken") \
  COUNT(accesses, "keys", "in a tree: keys that have come to this node")                      \
  COUNT(hits, "keys", "in a tree: repeats that this node has found")                          \
  COUNT(lost, "rows", "new rows that were probably taken for repeats, in units of 2^-32 rows")

#define STREAMFILTER_TRIGGER_COUNTS(COUNT)                  \
  COUNT(rows, "rows", "rows that the trigger has judged")   \
  COUNT(discarded, "rows", "of these, discarded or marked") \
  COUNT(diverted, "rows", "of these, diverted")             \
  COUNT(would_discard, "rows", "repeats that passed in mode shadow")

#define STREAMFILTER_SLICE_COUNTS(COUNT)                          \
  COUNT(answered, "keys", "keys that the slice has answered for") \
  COUNT(unanswered, "keys", "keys that it has not answered for")  \
  COUNT(messages, "messages", "messages sent to it")              \
  COUNT(bytes_sent, "bytes", "bytes sent to it")                  \
  COUNT(bytes_received, "bytes", "bytes received from it")

constexpr bool kOnlyThere = true;

struct CounterInfo {
  const char* name;
  const char* unit;
  const char* help;
  bool only_there = false;
};

#define STREAMFILTER_COUNTER_NAME(name, ...) name,
#define STREAMFILTER_COUNTER_INFO(name, ...) {#name, __VA_ARGS__},

enum class RowCount : uint8 { STREAMFILTER_ROW_COUNTS(STREAMFILTER_COUNTER_NAME) };
enum class TriggerCount : uint8 { STREAMFILTER_TRIGGER_COUNTS(STREAMFILTER_COUNTER_NAME) };
enum class SliceCount : uint8 { STREAMFILTER_SLICE_COUNTS(STREAMFILTER_COUNTER_NAME) };

constexpr CounterInfo kRowCounters[] = {STREAMFILTER_ROW_COUNTS(STREAMFILTER_COUNTER_INFO)};
constexpr CounterInfo kTriggerCounters[] = {STREAMFILTER_TRIGGER_COUNTS(STREAMFILTER_COUNTER_INFO)};
constexpr CounterInfo kSliceCounters[] = {STREAMFILTER_SLICE_COUNTS(STREAMFILTER_COUNTER_INFO)};

// Counts of one process.
template <typename Which, int n>
struct CountsOf {
  static constexpr int kCount = n;
  uint64 values[n] = {};

  uint64& operator[](Which which) { return values[static_cast<int>(which)]; }
  uint64 operator[](Which which) const { return values[static_cast<int>(which)]; }

  bool any() const {
    uint64 all = 0;
    for (const uint64 value : values) all |= value;
    return all != 0;
  }

  void operator+=(const CountsOf& more) {
    for (int i = 0; i < n; ++i) values[i] += more.values[i];
  }
};

// Counts in shared memory.
template <typename Which, int n>
struct SharedCountsOf {
  // mutable because PostgreSQL reads atomics by non-const pointers
  mutable pg_atomic_uint64 values[n];

  pg_atomic_uint64* operator[](Which which) { return &values[static_cast<int>(which)]; }
  uint64 read(Which which) const { return pg_atomic_read_u64(&values[static_cast<int>(which)]); }

  void init() {
    for (pg_atomic_uint64& value : values) pg_atomic_init_u64(&value, 0);
  }

  void set(const CountsOf<Which, n>& counts) {
    for (int i = 0; i < n; ++i) pg_atomic_write_u64(&values[i], counts.values[i]);
  }

  void add(const CountsOf<Which, n>& counts) {
    for (int i = 0; i < n; ++i)
      if (counts.values[i] != 0)
        pg_atomic_fetch_add_u64(&values[i], static_cast<int64>(counts.values[i]));
  }

  CountsOf<Which, n> read() const {
    CountsOf<Which, n> counts;
    for (int i = 0; i < n; ++i) counts.values[i] = pg_atomic_read_u64(&values[i]);
    return counts;
  }
};

using RowCounts = CountsOf<RowCount, lengthof(kRowCounters)>;
using SharedRowCounts = SharedCountsOf<RowCount, lengthof(kRowCounters)>;
using TriggerCounts = CountsOf<TriggerCount, lengthof(kTriggerCounters)>;
using SharedTriggerCounts = SharedCountsOf<TriggerCount, lengthof(kTriggerCounters)>;
using SliceCounts = CountsOf<SliceCount, lengthof(kSliceCounters)>;

}  // namespace streamfilter::pg
