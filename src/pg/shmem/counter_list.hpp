// All counters in one table: of a filter, of a trigger, of a slice on another server. Session
// counts, shared memory, saving, resetting, resizing and views are generated from it. To add a
// counter, add a line among its like: saved counts go by name. A view shows it in the column of its
// name, and the help is the column's comment (sql/60_views.sql).
#pragma once

namespace streamfilter::pg {

// Name, unit, help (sql/65_metrics.sql); of a filter also kOnlyThere: for a filter on other servers
// they alone count it, so it is unknown here.
#define STREAMFILTER_COUNTS(FILTER, TRIGGER, SLICE)                                                \
  FILTER(tested, "rows", "rows and keys it was asked about")                                       \
  FILTER(accepted, "rows", "of these, found new")                                                  \
  FILTER(discarded, "rows", "repeats that were discarded or marked")                               \
  FILTER(would_discard, "rows", "repeats that passed in mode shadow")                              \
  FILTER(diverted, "rows", "repeats that were diverted to another table")                          \
  FILTER(null_keys, "rows", "rows with a NULL in their key: they passed, and are not remembered")  \
  FILTER(ahead, "rows", "events whose time was too far ahead")                                     \
  FILTER(late, "rows", "events behind a newer one by more than lateness: they passed", kOnlyThere) \
  FILTER(rolled_back, "keys", "keys of transactions that rolled back")                             \
  FILTER(waits, "waits", "waits for another transaction with the same key")                        \
  FILTER(overflowed, "transactions",                                                               \
         "transactions with more keys in flight than there was room for")                          \
  FILTER(passed_overfull, "rows", "repeats that passed because the filter held too much",          \
         kOnlyThere)                                                                               \
  FILTER(unremembered, "transactions", "transactions whose keys other servers have not taken")     \
  FILTER(accesses, "keys", "in a tree: keys that have come to this node")                          \
  FILTER(hits, "keys", "in a tree: repeats that this node has found")                              \
  FILTER(lost, "rows", "new rows that were probably taken for repeats, in units of 2^-32 rows")    \
  TRIGGER(rows, "rows", "rows that the trigger has judged")                                        \
  TRIGGER(discarded, "rows", "of these, discarded or marked")                                      \
  TRIGGER(diverted, "rows", "of these, diverted")                                                  \
  TRIGGER(would_discard, "rows", "repeats that passed in mode shadow")                             \
  SLICE(answered, "keys", "keys that the slice has answered for")                                  \
  SLICE(unanswered, "keys", "keys that it has not answered for")                                   \
  SLICE(messages, "messages", "messages sent to it")                                               \
  SLICE(bytes_sent, "bytes", "bytes sent to it")                                                   \
  SLICE(bytes_received, "bytes", "bytes received from it")                                         \
  SLICE(replaced, "times", "times that its server came with other keys than before")

constexpr bool kOnlyThere = true;

struct CounterInfo {
  const char* of;
  const char* name;
  const char* unit;
  const char* help;
  bool only_there = false;
};

#define STREAMFILTER_COUNTER(name, ...) name,
#define STREAMFILTER_NO_COUNTER(...)
#define STREAMFILTER_FILTER_INFO(name, ...) {"filter", #name, __VA_ARGS__},
#define STREAMFILTER_TRIGGER_INFO(name, ...) {"trigger", #name, __VA_ARGS__},
#define STREAMFILTER_SLICE_INFO(name, ...) {"slice", #name, __VA_ARGS__},

enum class RowCount : uint8 {
  STREAMFILTER_COUNTS(STREAMFILTER_COUNTER, STREAMFILTER_NO_COUNTER, STREAMFILTER_NO_COUNTER) end
};
enum class TriggerCount : uint8 {
  STREAMFILTER_COUNTS(STREAMFILTER_NO_COUNTER, STREAMFILTER_COUNTER, STREAMFILTER_NO_COUNTER) end
};
enum class SliceCount : uint8 {
  STREAMFILTER_COUNTS(STREAMFILTER_NO_COUNTER, STREAMFILTER_NO_COUNTER, STREAMFILTER_COUNTER) end
};
constexpr CounterInfo kCounters[] = {STREAMFILTER_COUNTS(
    STREAMFILTER_FILTER_INFO, STREAMFILTER_TRIGGER_INFO, STREAMFILTER_SLICE_INFO)};

// Counts of one process.
template <typename Which, int first>
struct CountsOf {
  static constexpr int kCount = static_cast<int>(Which::end);
  static constexpr const CounterInfo* kInfo = kCounters + first;
  uint64 values[kCount] = {};

  uint64& operator[](Which which) { return values[static_cast<int>(which)]; }
  uint64 operator[](Which which) const { return values[static_cast<int>(which)]; }

  bool any() const {
    uint64 all = 0;
    for (const uint64 value : values) all |= value;
    return all != 0;
  }

  void operator+=(const CountsOf& more) {
    for (int i = 0; i < kCount; ++i) values[i] += more.values[i];
  }
};

// Counts in shared memory.
template <typename Which, typename Counts>
struct SharedCountsOf {
  static constexpr int n = Counts::kCount;
  // mutable because PostgreSQL reads atomics by non-const pointers
  mutable pg_atomic_uint64 values[n];

  pg_atomic_uint64* operator[](Which which) { return &values[static_cast<int>(which)]; }
  uint64 read(Which which) const { return pg_atomic_read_u64(&values[static_cast<int>(which)]); }

  void init() {
    for (pg_atomic_uint64& value : values) pg_atomic_init_u64(&value, 0);
  }

  void set(const Counts& counts) {
    for (int i = 0; i < n; ++i) pg_atomic_write_u64(&values[i], counts.values[i]);
  }

  void add(const Counts& counts) {
    for (int i = 0; i < n; ++i)
      if (counts.values[i] != 0)
        pg_atomic_fetch_add_u64(&values[i], static_cast<int64>(counts.values[i]));
  }

  Counts read() const {
    Counts counts;
    for (int i = 0; i < n; ++i) counts.values[i] = pg_atomic_read_u64(&values[i]);
    return counts;
  }
};

using RowCounts = CountsOf<RowCount, 0>;
using SharedRowCounts = SharedCountsOf<RowCount, RowCounts>;
using TriggerCounts = CountsOf<TriggerCount, RowCounts::kCount>;
using SharedTriggerCounts = SharedCountsOf<TriggerCount, TriggerCounts>;
using SliceCounts = CountsOf<SliceCount, RowCounts::kCount + TriggerCounts::kCount>;

}  // namespace streamfilter::pg
