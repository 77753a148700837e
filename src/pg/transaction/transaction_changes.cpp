#include "pg/server/postgres.hpp"

extern "C" {
#include "common/hashfn.h"
}

#include "pg/server/citus.hpp"
#include "pg/shmem/arrivals.hpp"
#include "pg/shmem/loss_estimate.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/own_changes_memory.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

TransactionChanges* all_changes = nullptr;

// The same by relation, so that a key costs no more where the transaction changes many filters. The
// first buckets are always there; more last as long as the transaction.
constexpr uint32 kFirstBuckets = 16;
TransactionChanges* first_buckets[kFirstBuckets];
TransactionChanges** buckets = first_buckets;
uint32 bucket_count = kFirstBuckets;
uint32 changes_count = 0;

// Has a key been added that publish_counts() tells of?
bool adds_unpublished = false;

TransactionChanges** bucket_of(Oid relation) {
  return &buckets[murmurhash32(relation) & (bucket_count - 1)];
}

void enter_bucket(TransactionChanges* changes) {
  TransactionChanges** bucket = bucket_of(changes->relation);
  changes->next_in_bucket = *bucket;
  *bucket = changes;
}

// As many buckets as there will be changes. Raises 53200.
void make_bucket() {
  if (changes_count < bucket_count) return;
  const Size bytes = sizeof(TransactionChanges*) * 2 * bucket_count;
  buckets = static_cast<TransactionChanges**>(
      MemoryContextAllocExtended(TopTransactionContext, bytes, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  bucket_count *= 2;
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    enter_bucket(changes);
}

void forget_all() {
  all_changes = nullptr;
  buckets = first_buckets;
  bucket_count = kFirstBuckets;
  changes_count = 0;
  memset(static_cast<void*>(first_buckets), 0, sizeof first_buckets);
}

void note_time(TransactionChanges* changes, const Element& element) {
  if (is_finite(element.time)) changes->latest = Max(changes->latest, element.time);
}

// A key has one time, the latest (timing_options.hpp): then its last change is all that need be
// asked.
Element with_latest_time(const TransactionChanges* changes, const Element& element,
                         const IndexHint& hint) {
  const ChangeLog* log = &changes->log;
  if (likely(!log->has_roles) || !is_finite(element.time)) return element;
  const uint32 last = hint.index_bits != 0 ? hint.last : find_key(log, element.hash).last,
               begin = log->last_reset == kNoChange ? 0 : log->last_reset + 1;
  Element result = element;
  if (last != kNoChange && last >= begin && !change_at(log, last)->is(ChangeType::erase))
    result.time = Max(result.time, element_at(log, last).time);
  return result;
}

// Removes the keys of all changes from `keep` on from the table of keys in flight. Returns how many
// added ones there were.
uint32 withdraw_from(TransactionChanges* changes, uint32 keep) {
  InFlightKey keys[kMaxRemoved];
  uint32 count = 0, removed = 0, erased = 0;
  const uint32 registered = changes->registered;
  ChangeReader reader(&changes->log, keep);
  for (uint32 i = keep; removed + count < registered && i < changes->log.count; ++i) {
    Change* change = reader.next();
    if (!change->registered) continue;
    change->registered = 0;
    uint64 hash = change->hash;
    if (unlikely(change->is(ChangeType::erase))) {
      hash = erasure_hash(hash);
      ++erased;
    }
    keys[count++] = {in_flight_tag(changes->generation, hash), changes->owners[change->owner]};
    if (count < kMaxRemoved) continue;
    remove_in_flight(keys, count);
    removed += count;
    count = 0;
  }
  remove_in_flight(keys, count);
  give_back_unused_in_flight();
  changes->registered -= removed + count;
  return removed + count - erased;
}

// Has the transaction keys that are not in the table of keys in flight?
bool hides_keys(const TransactionChanges* changes) {
  return changes->unregistered > 0 || changes->log.last_merge != kNoChange;
}

void announce(TransactionChanges* changes) {
  Unfinished* of = &changes->slot->unfinished;
  changes->announced_keys = hides_keys(changes);
  if (changes->announced_keys) pg_atomic_fetch_add_u32(&of->arriving_keys, 1);
}

// Beyond so many, the mark says that any key may be among them.
constexpr uint32 kFewKeys = 64;

void add_keys(const TransactionChanges* changes, ArrivalMark* mark) {
  const ChangeLog* log = &changes->log;
  if (log->last_reset != kNoChange || log->last_merge != kNoChange) {
    mark->keys = mark->erased = ~uint64{0};
    return;
  }
  if (log->count > kFewKeys) mark->keys = ~uint64{0};
  if (log->count > kFewKeys && !changes->erases) return;
  ChangeReader reader(log, 0);
  for (uint32 i = 0; i < log->count; ++i) {
    const Change* change = reader.next();
    const uint64 bit = arrival_bit(change->hash);
    mark->keys |= bit;
    if (change->is(ChangeType::erase)) mark->erased |= bit;
  }
}

ArrivalMark mark_of_changes() {
  ArrivalMark mark{};
  for (const TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    if (is_alive(changes) && changes->log.count > 0) {
      mark.filters |= arrival_bit(changes->slot);
      add_keys(changes, &mark);
    }
  return mark;
}

void release_slot(TransactionChanges* changes) {
  if (!is_alive(changes)) return;
  Unfinished* of = &changes->slot->unfinished;
  if (changes->announced_keys) pg_atomic_fetch_sub_u32(&of->arriving_keys, 1);
  if (changes->erases) pg_atomic_fetch_sub_u32(&of->erasing, 1);
  if (changes->published > 0) pg_atomic_fetch_sub_u64(&of->unregistered, changes->published);
  uint64 self = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
  if (changes->overflowed && self != 0 &&
      pg_atomic_compare_exchange_u64(&of->exclusive_xact, &self, 0))
    pg_atomic_write_u32(&of->exclusive_wanted, 0);
}

void apply(TransactionChanges* changes) {
  apply_committed(&changes->log, changes->header, changes->slot);
  if (changes->log.last_merge != kNoChange) expect_other_rate(changes->slot);
}

}  // namespace

void publish_count(TransactionChanges* changes) {
  const int64 more = static_cast<int64>(changes->unregistered) - changes->published;
  if (more != 0 && is_alive(changes))
    pg_atomic_fetch_add_u64(&changes->slot->unfinished.unregistered, more);
  changes->published = changes->unregistered;
}

TransactionChanges* find_changes(Oid relation, const FilterSlot* slot, uint64 generation) {
  TransactionChanges* changes = *bucket_of(relation);
  while (changes != nullptr && (changes->slot != slot || changes->generation != generation))
    changes = changes->next_in_bucket;
  return changes;
}

TransactionChanges* begin_changes(FilterSlot* slot, Header* header) {
  const Oid relation = slot->relation;
  if (TransactionChanges* changes = find_changes(relation, slot, slot->generation)) return changes;
  transaction_uses_filters = true;
  if (all_changes == nullptr) join_distributed_transaction(distributed_transaction());
  make_bucket();
  const Parameters& parameters = header->parameters;
  auto* changes = static_cast<TransactionChanges*>(
      MemoryContextAlloc(TopTransactionContext, sizeof(TransactionChanges)));
  memset(static_cast<void*>(changes), 0, sizeof *changes);  // faster than the server's loop
  changes->relation = relation;
  changes->slot = slot;
  changes->generation = slot->generation;
  changes->header = header;
  changes->window = window_of(parameters);
  changes->only_adds = changes->window.length == 0 && changes->window.rows == 0;
  changes->latest = PG_INT64_MIN;
  init_log(&changes->log, uses_time(parameters) || uses_importance(parameters));
  changes->owner_capacity = 4;
  changes->owners = static_cast<Owner*>(
      MemoryContextAlloc(TopTransactionContext, sizeof(Owner) * changes->owner_capacity));
  changes->next = all_changes;
  all_changes = changes;
  enter_bucket(changes);
  ++changes_count;
  return changes;
}

void note_savepoint(TransactionChanges* changes) {
  auto* savepoint =
      static_cast<Savepoint*>(MemoryContextAlloc(TopTransactionContext, sizeof(Savepoint)));
  *savepoint = {changes->savepoints,
                GetCurrentSubTransactionId(),
                GetCurrentTransactionNestLevel(),
                changes->log.count,
                kNoChange,
                changes->latest};
  changes->savepoints = savepoint;
}

void append_own_change(TransactionChanges* changes, ChangeType type, const Element& element,
                       const IndexHint& hint) {
  append_change(&changes->log, type,
                type == ChangeType::add ? with_latest_time(changes, element, hint) : element, hint);
  note_time(changes, element);
  if (type == ChangeType::reset) changes->latest = PG_INT64_MIN;
  if (type == ChangeType::erase && !changes->erases) {
    changes->erases = true;
    pg_atomic_fetch_add_u32(&changes->slot->unfinished.erasing, 1);
  }
  changes->only_adds &= type == ChangeType::add || type == ChangeType::repeat;
  if (type != ChangeType::add) return;
  ++changes->unregistered;
  adds_unpublished = true;
  // Publishes in steps instead of for each key: publish_counts does the rest.
  if (changes->unregistered - changes->published > changes->published / 64) publish_count(changes);
}

void append_registered(TransactionChanges* changes, const Element& element, const IndexHint& hint) {
  Change* change =
      append_change(&changes->log, ChangeType::add, with_latest_time(changes, element, hint), hint);
  change->registered = 1;
  change->owner = changes->savepoints->owner;
  note_time(changes, element);
  ++changes->registered;
}

void append_erasure(TransactionChanges* changes, const Element& element, bool registered) {
  append_own_change(changes, ChangeType::erase, element);
  if (!registered) return;
  Change* change = change_at(&changes->log, changes->log.count - 1);
  change->registered = 1;
  change->owner = changes->savepoints->owner;
  ++changes->registered;
}

void begin_new_keys(TransactionChanges* changes) {
  reserve_own_change(changes);
  if (changes->savepoints->owner != kNoChange) return;
  const Owner owner = make_owner(changes->slot, GetCurrentFullTransactionId());
  if (changes->owner_count == changes->owner_capacity) {
    changes->owners = static_cast<Owner*>(repalloc_huge(
        changes->owners, sizeof(Owner) * 2 * static_cast<Size>(changes->owner_capacity)));
    changes->owner_capacity *= 2;
  }
  changes->owners[changes->owner_count] = owner;
  changes->savepoints->owner = changes->owner_count++;
}

void withdraw_registrations(TransactionChanges* changes) {
  changes->unregistered += withdraw_from(changes, 0);
  publish_count(changes);
}

void retract_from(TransactionChanges* changes, uint32 keep) {
  uint32 keys = 0;
  ChangeReader reader(&changes->log, keep);
  for (uint32 i = keep; i < changes->log.count; ++i) keys += reader.next()->is(ChangeType::add);
  changes->unregistered -= keys - withdraw_from(changes, keep);
  publish_count(changes);
  if (is_alive(changes))
    pg_atomic_fetch_add_u64(changes->slot->stats.counts[RowCount::rolled_back], keys);
}

void take_back_key(TransactionChanges* changes, uint64 hash) {
  ChangeLog* log = &changes->log;
  uint32 at = find_key(log, hash).last;
  while (at != kNoChange && change_at(log, at)->is(ChangeType::repeat))
    at = change_at(log, at)->previous;
  if (at == kNoChange || !change_at(log, at)->is(ChangeType::add)) return;
  Change* added = change_at(log, at);
  if (added->registered) {
    const InFlightKey key = {in_flight_tag(changes->generation, hash),
                             changes->owners[added->owner]};
    added->registered = 0;
    remove_in_flight(&key, 1);
    --changes->registered;
  } else {
    --changes->unregistered;
    publish_count(changes);
  }
  withdraw_changes(log, at);
  if (is_alive(changes))
    pg_atomic_fetch_add_u64(changes->slot->stats.counts[RowCount::rolled_back], 1);
}

void publish_counts() {
  if (!adds_unpublished) return;
  adds_unpublished = false;
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    publish_count(changes);
}

TransactionChanges* first_changes() { return all_changes; }

// A transaction without an id has changed no row that others could see before its keys arrive.
void announce_transaction_changes() {
  const FullTransactionId self = GetTopFullTransactionIdIfAny();
  if (!FullTransactionIdIsValid(self)) return;
  if (!is_marked_arriving()) {
    const ArrivalMark mark = mark_of_changes();
    if (mark.filters == 0) return;
    mark_arriving(self, mark);
  }
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    if (is_alive(changes)) announce(changes);
}

// Marked transactions wait for nothing that only a client can end, so this wait ends.
void order_transaction_changes(const CommitWait& wait) {
  const ArrivalMark mark = mark_of_changes();
  if (mark.filters == 0) return;
  mark_arriving(GetTopFullTransactionId(), mark);
  wait_for_earlier(wait,
                   "while waiting for another transaction that commits changes of the same "
                   "keys");
}

void forget_order() { unmark_arriving(); }

// First brings the keys into all filters, then announces that, then lets other transactions know
// that this one has ended: a key may be in several nodes of a tree.
void apply_transaction_changes() {
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    if (is_alive(changes)) apply(changes);
}

void publish_transaction_changes() {
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next) {
    // Changes undone by a savepoint leave nothing to save.
    if (is_alive(changes) && changes->log.count > 0)
      pg_atomic_fetch_add_u64(&changes->slot->applied, 1);
    withdraw_registrations(changes);
  }
}

void retract_transaction_changes() {
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    retract_from(changes, 0);  // nobody reads the log any more
}

void forget_transaction_changes() {
  for (TransactionChanges* changes = all_changes; changes != nullptr; changes = changes->next)
    release_slot(changes);
  unmark_arriving();
  leave_distributed_transaction();
  release_log_memory();
  forget_all();
}

// ---- savepoints ---------------------------------------------------------------------------------

static void pop_savepoint(TransactionChanges* changes) {
  Savepoint* savepoint = changes->savepoints;
  changes->savepoints = savepoint->below;
  pfree(savepoint);
}

static void abort_subtransaction(TransactionChanges* changes, int level) {
  if (changes->saving.wanted_level >= level) changes->saving.wanted_level = 0;
  if (changes->saving.forgotten_level >= level) changes->saving.forgotten_level = 0;
  uint32 keep = changes->log.count;
  while (changes->savepoints != nullptr && changes->savepoints->level >= level) {
    keep = changes->savepoints->start;
    changes->latest = changes->savepoints->latest;
    // Entries that survive belong to older savepoints.
    if (changes->savepoints->owner != kNoChange) changes->owner_count = changes->savepoints->owner;
    pop_savepoint(changes);
  }
  retract_from(changes, keep);
  while (changes->log.count > keep) {
    const Change* last = change_at(&changes->log, changes->log.count - 1);
    if (last->is(ChangeType::merge)) pfree(merged_value(last));
    undo_change(&changes->log);
  }
}

// Gives a subtransaction's changes to its parent.
static void commit_subtransaction(TransactionChanges* changes, int level, SubTransactionId parent) {
  if (changes->saving.wanted_level == level) --changes->saving.wanted_level;
  if (changes->saving.forgotten_level == level) --changes->saving.forgotten_level;
  if (changes->savepoints == nullptr || changes->savepoints->level < level) return;
  const Savepoint* below = changes->savepoints->below;
  if (below != nullptr && below->level == level - 1) {
    pop_savepoint(changes);
    return;
  }
  changes->savepoints->level = level - 1;
  changes->savepoints->subtransaction = parent;
  changes->savepoints->owner = kNoChange;
}

void keep_changes_of_subtransaction(SubTransactionId parent) {
  const int level = GetCurrentTransactionNestLevel();
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    commit_subtransaction(changes, level, parent);
}

void retract_changes_of_subtransaction() {
  const int level = GetCurrentTransactionNestLevel();
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    abort_subtransaction(changes, level);
}

// ---- keys in flight -----------------------------------------------------------------------------

// Enters the keys of a transaction that had a filter for itself into the table of keys in flight,
// so that others wait only for these keys.

namespace {

// 0 if not known. Ids of subtransactions between the outermost and the current one are those noted
// with their keys.
Owner owner_of_savepoint(const TransactionChanges* changes, const Savepoint* savepoint) {
  if (savepoint->owner != kNoChange) return changes->owners[savepoint->owner];
  if (savepoint->level == 1) return make_owner(changes->slot, GetTopFullTransactionId());
  if (savepoint->subtransaction == GetCurrentSubTransactionId())
    return make_owner(changes->slot, GetCurrentFullTransactionId());
  return 0;
}

// The savepoints, outermost first.
struct Savepoints {
  Savepoint** at;
  uint32 count;
};

Savepoints savepoints_of(const TransactionChanges* changes) {
  Savepoints all = {nullptr, 0};
  for (const Savepoint* at = changes->savepoints; at != nullptr; at = at->below) ++all.count;
  all.at = static_cast<Savepoint**>(palloc(sizeof(Savepoint*) * Max(all.count, 1u)));
  uint32 i = all.count;
  for (Savepoint* at = changes->savepoints; at != nullptr; at = at->below) all.at[--i] = at;
  return all;
}

// Gives each savepoint its owner, in order. No key may be registered. False if an owner is not
// known.
bool renew_owners(TransactionChanges* changes, const Savepoints& savepoints) {
  const uint32 capacity = Max(savepoints.count, uint32{4});
  auto* owners = static_cast<Owner*>(
      MemoryContextAlloc(TopTransactionContext, sizeof(Owner) * static_cast<Size>(capacity)));
  for (uint32 i = 0; i < savepoints.count; ++i)
    if ((owners[i] = owner_of_savepoint(changes, savepoints.at[i])) == 0) return false;
  pfree(changes->owners);
  changes->owners = owners;
  changes->owner_capacity = capacity;
  changes->owner_count = savepoints.count;
  for (uint32 i = 0; i < savepoints.count; ++i) savepoints.at[i]->owner = i;
  return true;
}

// False if there is no room.
bool register_key(TransactionChanges* changes, Change* change, uint32 owner) {
  const InFlightTag tag = in_flight_tag(changes->generation, change->hash);
  InFlightPartition* partition = partition_of(tag);
  do {
    const LockHeld held(lock_of(partition), LW_EXCLUSIVE);
    InFlightEntry* entry = find_entry(partition, tag);
    const Owner there = owner_of_entry(entry);
    if (there == 0) {
      if (!add_in_flight(partition, entry, tag, changes->owners[owner], changes->registered))
        continue;
    } else if (TransactionIdIsCurrentTransactionId(
                   XidFromFullTransactionId(transaction_of(there)))) {
      return true;  // a key that was erased and added again
    } else {
      // of an ended transaction: otherwise this transaction would have waited for it
      entry->owner = changes->owners[owner];
    }
    change->registered = 1;
    change->owner = owner;
    ++changes->registered;
    --changes->unregistered;
    return true;
  } while (grow_in_flight(tag));
  return false;
}

// Registers the keys of one savepoint.
bool register_keys(TransactionChanges* changes, const Savepoint* savepoint, uint32 end) {
  ChangeReader reader(&changes->log, savepoint->start);
  for (uint32 i = savepoint->start; i < end; ++i) {
    Change* change = reader.next();
    if (i % 1024 == 0) CHECK_FOR_INTERRUPTS();
    if (change->is(ChangeType::add) && !register_key(changes, change, savepoint->owner))
      return false;
  }
  return true;
}

// A key that was added more than once belongs to the savepoint that added it first: it stays when
// the others roll back.
bool register_keys(TransactionChanges* changes, const Savepoints& savepoints) {
  for (uint32 i = 0; i < savepoints.count; ++i) {
    const bool is_last = i + 1 == savepoints.count;
    const uint32 end = is_last ? changes->log.count : savepoints.at[i + 1]->start;
    if (!register_keys(changes, savepoints.at[i], end)) return false;
  }
  return true;
}

}  // namespace

bool register_all_keys(TransactionChanges* changes) {
  withdraw_registrations(changes);  // also registrations of an attempt that an error has ended
  const Savepoints savepoints = savepoints_of(changes);
  const bool done = renew_owners(changes, savepoints) && register_keys(changes, savepoints);
  pfree(savepoints.at);
  done ? publish_count(changes) : withdraw_registrations(changes);
  return done;
}

// ---- what they say of a key ---------------------------------------------------------------------

static bool holds(const MergedValue* value, const Element& element) {
  if (value->slice == kAllSlices) return test(value->header(), element);
  const Parameters& parameters = value->header()->parameters;
  for (unsigned i = 0; i < probes(parameters); ++i) {
    const KeyProbe probe = probe_of(parameters, element.hash, i);
    if (probe.slice != value->slice || !test_probe(value->header(), element, {0, probe.hash}))
      return false;
  }
  return true;
}

static OwnView view_of(const TransactionChanges* changes, const Element& element, uint32 last) {
  const ChangeLog* log = &changes->log;
  const OwnView rest = log->last_reset == kNoChange ? OwnView::untouched : OwnView::forgotten;
  if (last == kNoChange || (rest == OwnView::forgotten && last < log->last_reset)) return rest;
  if (change_at(log, last)->is(ChangeType::erase)) return OwnView::forgotten;
  return are_in_window(changes->window, element_at(log, last), element, log->count - last - 1)
             ? OwnView::added
             : rest;
}

// Was the key in one of the values that the transaction has merged? `last` is the key's own last
// change.
static bool in_merged_value(const TransactionChanges* changes, const Element& element,
                            uint32 last) {
  const ChangeLog* log = &changes->log;
  for (uint32 i = log->last_merge; i != kNoChange; i = change_at(log, i)->previous) {
    // A later reset has removed the value's keys.
    if ((log->last_reset != kNoChange && i < log->last_reset) || (last != kNoChange && i < last))
      return false;
    if (holds(merged_value(change_at(log, i)), element)) return true;
  }
  return false;
}

OwnView view_of_changed(const TransactionChanges* changes, const Element& element, uint32 last) {
  const OwnView view = view_of(changes, element, last);
  if (likely(changes->log.last_merge == kNoChange) || view == OwnView::added) return view;
  return in_merged_value(changes, element, last) ? OwnView::added : view;
}

Element as_accepted(const TransactionChanges* changes, const Element& element,
                    const IndexHint& hint) {
  Element result = element;
  if (changes->window.length == 0 || hint.last == kNoChange) return result;
  const int64 kept = element_at(&changes->log, hint.last).time;
  result.time = changes->window.extends ? Max(kept, element.time) : kept;
  return result;
}

}  // namespace streamfilter::pg
