#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/lock.h"
#include "utils/resowner.h"
}

#include "pg/catalog/lookup.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/handle/waiting_code.hpp"
#include "pg/server/citus.hpp"
#include "pg/server/monotonic.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/shmem/arrivals.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {

bool is_in_filter(const FilterHandle* filter, const Element& element) {
  if (filter->header->parameters.k1 > 0)
    return test_in_slices(filter->slot, filter->header, element);
  const LockHeld held(slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash)),
                      LW_SHARED);
  return test(filter->header, element);
}

namespace {

bool waits(const FilterHandle* filter) {
  return filter->relation->options.conflict == Conflict::wait;
}

void say_what_for(void* arg) {
  const auto* filter = static_cast<const FilterHandle*>(arg);
  errcontext("while waiting for another transaction that adds keys to filter \"%s\"",
             filter->relation->name);
}

// Also for a transaction that waits for the end of this one.
[[noreturn]] void raise_citus_overflowed(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("too many keys of one distributed transaction for filter \"%s\"",
                 filter->relation->name),
          errdetail("Another connection of the transaction to this node has added more than "
                    "streamfilter.max_in_flight, now %d, and half of streamfilter.dynamic_memory, "
                    "now %dkB, have room for.",
                    max_in_flight, dynamic_memory_kb),
          errhint("Load in smaller transactions, or raise streamfilter.dynamic_memory on every "
                  "node and reload the configuration."));
}

// The lock that a transaction holds while it has the filter for itself and can still hand it over.
LOCKTAG tag_of(const FilterSlot* slot) {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ForeignTableRelationId, slot->relation, 1);
  return tag;
}

// Calls use() so that its locks outlast the current subtransaction.
template <typename Use>
bool with_locks_of_transaction(const Use& use) {
  ResourceOwner caller = CurrentResourceOwner;
  CurrentResourceOwner = TopTransactionResourceOwner;
  const bool result = use();
  CurrentResourceOwner = caller;
  return result;
}

void unlock_for_others(const FilterSlot* slot) {
  LOCKTAG tag = tag_of(slot);
  with_locks_of_transaction([&] { return LockRelease(&tag, ExclusiveLock, false); });
}

// Downgrades an exclusive lock on the filter to entries per key, so that others block only on keys
// of this transaction. Attempted once per transaction.
void hand_over(TransactionChanges* changes) {
  FilterSlot* slot = changes->slot;
  if (register_all_keys(changes)) {
    changes->overflowed = false;
    pg_atomic_exchange_u64(&slot->unfinished.exclusive_xact, 0);
  } else {
    pg_atomic_fetch_add_u64(slot->stats.counts[RowCount::overflowed], 1);
  }
  changes->grows = true;
  pg_atomic_write_u32(&slot->unfinished.exclusive_wanted, 0);
  unlock_for_others(slot);
}

// May the transaction have a filter that it can hand over? Otherwise it need not look through all.
bool may_have_exclusive = false;

bool may_hand_over(const TransactionChanges* changes) {
  return changes->overflowed && !changes->grows && is_alive(changes);
}

bool is_to_hand_over(const TransactionChanges* changes) {
  return may_hand_over(changes) &&
         pg_atomic_read_u32(&changes->slot->unfinished.exclusive_wanted) != 0;
}

}  // namespace

bool has_exclusive_filters() { return may_have_exclusive; }

void hand_over_filters() {
  if (likely(!may_have_exclusive)) return;
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (may_hand_over(changes)) hand_over(changes);
  may_have_exclusive = false;
}

void hand_over_wanted_filters() {
  if (likely(!may_have_exclusive)) return;
  for (TransactionChanges* changes = first_changes(); changes != nullptr; changes = changes->next)
    if (unlikely(is_to_hand_over(changes))) hand_over(changes);
}

namespace {

// Waits until the other (sub)transaction has ended, as a unique index does.
void wait_for(const FilterHandle* filter, FullTransactionId other) {
  if (unlikely(is_same_distributed_transaction(other))) raise_citus_overflowed(filter);
  pg_atomic_fetch_add_u64(filter->slot->stats.counts[RowCount::waits], 1);
  ErrorContextCallback context = {error_context_stack, say_what_for,
                                  const_cast<FilterHandle*>(filter)};
  error_context_stack = &context;
  XactLockTableWait(XidFromFullTransactionId(other), nullptr, nullptr, XLTW_None);
  error_context_stack = context.previous;
}

void lock_for_itself(const FilterHandle* filter) {
  const auto lock = [tag = tag_of(filter->slot)](bool at_once) {
    return with_locks_of_transaction(
        [&] { return LockAcquire(&tag, ExclusiveLock, false, at_once) != LOCKACQUIRE_NOT_AVAIL; });
  };
  if (lock(true)) return;
  hand_over_filters();
  pg_atomic_write_u32(&filter->slot->unfinished.exclusive_wanted, 1);
  lock(false);
}

// Another transaction has the whole filter: asks it to replace that by entries per key, which it
// does soon, or waits until its end.
void wait_for_any_key(const FilterHandle* filter, uint64 other) {
  if (!is_same_distributed_transaction(FullTransactionIdFromU64(other))) {
    hand_over_filters();
    LOCKTAG tag = tag_of(filter->slot);
    pg_atomic_write_u32(&filter->slot->unfinished.exclusive_wanted, 1);
    ErrorContextCallback context = {error_context_stack, say_what_for,
                                    const_cast<FilterHandle*>(filter)};
    error_context_stack = &context;
    LockAcquire(&tag, ShareLock, false, false);
    LockRelease(&tag, ShareLock, false);
    error_context_stack = context.previous;
    if (pg_atomic_read_u64(&filter->slot->unfinished.exclusive_xact) != other) {
      pg_atomic_fetch_add_u64(filter->slot->stats.counts[RowCount::waits], 1);
      return;
    }
  }
  wait_for(filter, FullTransactionIdFromU64(other));
}

// Waits until all committed transactions have brought in their changes. Wait for the top-level
// transaction id only: ids of savepoints have no locks until then.
void wait_for_arrivals(const FilterHandle* filter) {
  uint32 at = 0;
  for (;;) {
    const FullTransactionId other = next_arriving(filter->slot, &at);
    if (!FullTransactionIdIsValid(other)) return;
    if (!TransactionIdIsInProgress(XidFromFullTransactionId(other))) wait_for(filter, other);
  }
}

// Result of trying to reserve a key that is not this transaction's own.
enum class ReserveResult : uint8 {
  seen,     // the filter has it after all
  none,     // new, and in the table of keys in flight if that was asked for
  other,    // another transaction has added it
  any_key,  // another transaction has the whole filter and must be waited for
  no_room,  // new, but the table is full
};

struct ReserveRequest {
  Owner owner;      // this transaction
  Owner finished;   // 0, or an owner known to have rolled back
  bool registers;   // enter the table
  bool look_again;  // look into the filter again: it has changed
  // Results.
  Owner met;
  bool registered;
};

// Must others wait for this transaction before they add any key?
bool has_for_itself(FilterSlot* slot) {
  return pg_atomic_read_u64(&slot->unfinished.exclusive_xact) ==
         U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
}

// Has the key arrived in the filter since the first look? `applied` is from before that look.
bool has_arrived(FilterHandle* filter, const Element& element, uint64 applied,
                 const ReserveRequest* request) {
  return request->look_again && pg_atomic_read_u64(&filter->slot->applied) != applied &&
         is_in_filter(filter, element) && !passes_repeat(filter, element);
}

ReserveResult try_to_reserve(FilterHandle* filter, const TransactionChanges* changes,
                             const Element& element, uint64 applied, ReserveRequest* request) {
  FilterSlot* slot = filter->slot;
  const InFlightTag tag = in_flight_tag(changes->generation, element.hash);
  InFlightPartition* partition = partition_of(tag);
  request->registered = false;
  // Nobody can add a key to a filter that this transaction has for itself.
  if (changes->overflowed && is_empty_partition(partition) && has_for_itself(slot))
    return has_arrived(filter, element, applied, request) ? ReserveResult::seen
                                                          : ReserveResult::none;
  ReserveResult result = ReserveResult::none;
  LWLockAcquire(lock_of(partition), LW_EXCLUSIVE);
  InFlightEntry* entry = find_entry(partition, tag);
  const Owner owner = request->met = owner_of_entry(entry);
  const bool own = owner != 0 && TransactionIdIsCurrentTransactionId(
                                     XidFromFullTransactionId(transaction_of(owner)));
  const uint64 exclusive_xact = pg_atomic_read_u64(&slot->unfinished.exclusive_xact);
  if (owner != 0 && !own && owner != request->finished) {
    result = ReserveResult::other;
  } else if (unlikely(exclusive_xact != 0) && !has_for_itself(slot)) {
    result = ReserveResult::any_key;
    request->met = exclusive_xact;
  } else if (has_arrived(filter, element, applied, request)) {
    result = ReserveResult::seen;
  } else if (owner != 0 && !own) {
    entry->owner = request->owner;
    request->registered = true;
  } else if (owner == 0 && request->registers) {
    request->registered = add_in_flight(partition, entry, tag, request->owner, changes->registered);
    if (!request->registered) result = ReserveResult::no_room;
  }
  LWLockRelease(lock_of(partition));
  return result;
}

// The table has no room for this transaction's next key, and may not grow. With conflict 'wait' the
// transaction takes the whole filter instead, so that others wait before they add any key. Only one
// transaction at a time can do so.
void overflow(FilterHandle* filter, TransactionChanges* changes) {
  FilterSlot* slot = filter->slot;
  if (waits(filter)) {
    if (!changes->grows) lock_for_itself(filter);
    const uint64 self = U64FromFullTransactionId(GetTopFullTransactionId());
    for (;;) {
      uint64 other = 0;
      if (pg_atomic_compare_exchange_u64(&slot->unfinished.exclusive_xact, &other, self) ||
          other == self)
        break;
      wait_for_any_key(filter, other);
    }
    changes->overflowed = may_have_exclusive = true;
    pass_all_partitions();
    withdraw_registrations(changes);
  }
  changes->overflowed = true;
  if (changes->grows) pg_atomic_fetch_add_u64(slot->stats.counts[RowCount::overflowed], 1);
}

// A transaction of one statement locks the whole filter until others come, because an entry in the
// table is a large part of what a row of a bulk load costs. Keys are entered one by one from the
// start in a transaction block, which may stay open while nothing runs, and in a statement that may
// wait for others (a unique index, a foreign key, a client, a function), because it could not
// replace the lock meanwhile.
void make_room_for(FilterHandle* filter, TransactionChanges* changes, const Element& element) {
  resolve_prepared(filter->relid);
  if (!changes->grows)
    changes->grows = IsTransactionBlock() || !waits(filter) || may_statement_wait(filter);
  if (!changes->grows || !grow_in_flight(in_flight_tag(changes->generation, element.hash)))
    overflow(filter, changes);
}

// Another transaction has added the key. True: that decides what becomes of it; otherwise the
// caller tries again. `arrived`: the last one whose keys were waited for.
bool meet(const FilterHandle* filter, ReserveRequest* request, Owner* arrived, bool at_once,
          Verdict* verdict) {
  const Conflict conflict = filter->relation->options.conflict;
  *verdict = Verdict::taken;
  switch (xact_status(transaction_of(request->met))) {
    case XactStatus::committed:
      // Its keys are arriving in the filter. Not all need to: it may have deleted some.
      if (conflict == Conflict::discard || request->met == *arrived) return true;
      *arrived = request->met;
      wait_until_applied(filter);
      return false;
    case XactStatus::aborted: request->finished = request->met; return false;
    case XactStatus::running: break;
  }
  if (at_once || conflict == Conflict::discard) return true;
  // Both commit or roll back together.
  if (unlikely(is_same_distributed_transaction(transaction_of(request->met)))) return true;
  if (conflict == Conflict::admit) {
    *verdict = Verdict::fresh;
    return true;
  }
  hand_over_filters();
  wait_for(filter, transaction_of(request->met));
  return false;
}

}  // namespace

void wait_until_applied(const FilterHandle* filter) {
  wait_for_arrivals(filter);
  resolve_prepared(filter->relid);
}

void erase_reserved(FilterHandle* filter, TransactionChanges* changes, const Element& element) {
  // Others that have the filter's key ask for erasures one by one.
  if (may_hand_over(changes)) hand_over(changes);
  changes->grows = true;
  const Owner self = reserve_new_key(changes);
  const InFlightTag tag = in_flight_tag(changes->generation, erasure_hash(element.hash));
  InFlightPartition* partition = partition_of(tag);
  bool registered = false, is_there = false;
  while (waits(filter) && !changes->overflowed && !registered && !is_there) {
    LWLockAcquire(lock_of(partition), LW_EXCLUSIVE);
    InFlightEntry* entry = find_entry(partition, tag);
    is_there = owner_of_entry(entry) != 0;
    registered = !is_there && add_in_flight(partition, entry, tag, self, changes->registered);
    LWLockRelease(lock_of(partition));
    if (!is_there && !registered && !grow_in_flight(tag)) overflow(filter, changes);
  }
  append_erasure(changes, element, registered);
}

// True: the key may have changed while this has waited.
static bool await_erasure(FilterHandle* filter, const Element& element) {
  const auto runs = [](FullTransactionId other) {
    return FullTransactionIdIsValid(other) &&
           !TransactionIdIsCurrentTransactionId(XidFromFullTransactionId(other)) &&
           !is_same_distributed_transaction(other) && xact_status(other) == XactStatus::running;
  };
  const InFlightTag tag = in_flight_tag(filter->slot_generation, erasure_hash(element.hash));
  InFlightPartition* partition = partition_of(tag);
  LWLockAcquire(lock_of(partition), LW_SHARED);
  const FullTransactionId other = transaction_of(owner_of_entry(find_entry(partition, tag)));
  // Who has the whole filter withdraws entries under this lock, after saying so.
  const uint64 exclusive = pg_atomic_read_u64(&filter->slot->unfinished.exclusive_xact);
  LWLockRelease(lock_of(partition));
  if (runs(other)) {
    hand_over_filters();
    wait_for(filter, other);
  } else if (runs(FullTransactionIdFromU64(exclusive))) {
    wait_for_any_key(filter, exclusive);
  } else {
    return false;
  }
  return true;
}

void await_erasures(FilterHandle* filter, const Element& element) {
  while (waits(filter) && await_erasure(filter, element)) continue;
  wait_until_applied(filter);
}

const Element* waiting_key = nullptr;

Verdict test_and_reserve(FilterHandle* filter, TransactionChanges* changes, const Element& element,
                         const IndexHint& hint, uint64 applied, bool look_again, bool at_once) {
  ReserveRequest request{};
  request.owner = reserve_new_key(changes);
  if (unlikely(is_to_hand_over(changes))) hand_over(changes);
  request.look_again = look_again;
  Owner arrived = 0;
  for (;;) {
    Verdict verdict = Verdict::fresh;
    request.registers = !changes->overflowed;
    const ReserveResult result = try_to_reserve(filter, changes, element, applied, &request);
    if (result == ReserveResult::none && request.registered) {
      append_registered(changes, element, hint);
      return Verdict::fresh;
    }
    switch (result) {
      case ReserveResult::seen:
        // It has arrived since the first look; who brought it, or another, may forget it again.
        if (!at_once) await_erasures(filter, element);
        if (at_once || is_in_filter(filter, element)) return Verdict::seen;
        continue;
      case ReserveResult::none: break;
      case ReserveResult::no_room: make_room_for(filter, changes, element); continue;
      case ReserveResult::any_key:
        waiting_key = &element;
        if (at_once) return Verdict::taken;
        wait_for_any_key(filter, request.met);
        continue;
      case ReserveResult::other:
        waiting_key = &element;
        if (!meet(filter, &request, &arrived, at_once, &verdict)) continue;
        break;
    }
    if (verdict == Verdict::fresh) append_own_change(changes, ChangeType::add, element, hint);
    return verdict;
  }
}

TransactionChanges* begin(const FilterHandle* filter) {
  return begin_changes(filter->slot, filter->header);
}

// ---- overfull filters ---------------------------------------------------------------------------

namespace {

// An estimate costs more than the rest of a row, so it is kept until keys are applied.
bool exceeds(FilterHandle* filter, const Element& element) {
  const Parameters& parameters = filter->header->parameters;
  if (parameters.k1 > 0) return exceeds_rate(filter->header, element.hash, filter->overfull.limit);
  const uint32 slice = slice_of(parameters, element.hash);
  OverfullVerdict& known = filter->overfull.verdicts[slice % lengthof(filter->overfull.verdicts)];
  const uint64 applied = pg_atomic_read_u64(&filter->slot->applied) + 1;
  if (known.applied == applied && known.slice == slice) return known.exceeds;
  const LockHeld held(slice_lock(filter->slot, slice), LW_SHARED);
  known = {applied, slice, exceeds_rate(filter->header, element.hash, filter->overfull.limit)};
  return known.exceeds;
}

// Discarded rows also move the window of rows of a full filter (timing_bloom.cpp): by accepted rows
// alone it would hardly recover.
void count_key(FilterHandle* filter, const Element& element) {
  const Parameters& parameters = filter->header->parameters;
  if (ops_of(filter->header).forgets != Forgets::after_window || parameters.k1 > 0) return;
  LWLock* lock = slice_lock(filter->slot, slice_of(parameters, element.hash));
  unsigned position;
  const LockHeld held(lock, LW_EXCLUSIVE);
  promote(filter->header, element, position);
}

bool is_log_due(FilterSlot* slot) {
  const int64 now = monotonic_us();
  uint64 last = pg_atomic_read_u64(&slot->overfull_logged);
  if (last != 0 && now - static_cast<int64>(last) < USECS_PER_MINUTE) return false;
  return pg_atomic_compare_exchange_u64(&slot->overfull_logged, &last, static_cast<uint64>(now));
}

// More memory counts for keys to come: what the filter has stays, and with it its rate, until the
// window has passed or the filter is empty.
int errhint_overfull(const FilterHandle* filter) {
  const char* name = qualified_name(filter->relid);
  char size[32];
  print_size(TYPEALIGN64(1024, 2 * filter->header->parameters.memory), size, sizeof size);
  const char* resize =
      psprintf("CALL streamfilter_resize(%s, '%s');", quote_literal_cstr(name), size);
  if (ops_of(filter->header).forgets == Forgets::after_window)
    return errhint(
        "%s The rate holds again when what it holds now has left the window. "
        "TRUNCATE %s; forgets them at once.",
        resize, name);
  return errhint(
      "TRUNCATE %s; %s then fill it with streamfilter_warm(). In any size, what it holds "
      "now keeps its rate.",
      name, resize);
}

void warn_of(const FilterHandle* filter, int level) {
  const bool passes = filter->overfull.passes;
  const double rate = filter->overfull.limit.rate / kOverfullRate;
  ereport(level, errcode(kOverfullFilter),
          errmsg("filter \"%s\" holds more keys than its false-positive rate allows",
                 filter->relation->name),
          passes
              ? errdetail("It would take more than %g of the new rows for repeats, so repeats "
                          "pass.",
                          rate)
              : errdetail("It takes more than %g of the new rows for repeats, and discards them.",
                          rate),
          errhint_overfull(filter));
}

}  // namespace

bool passes_overfull(FilterHandle* filter, const Element& element) {
  if (!exceeds(filter, element)) return false;
  filter->overfull.met = true;
  if (!filter->overfull.passes) {
    count_key(filter, element);
    return false;
  }
  ++filter->uncounted.spared;
  ++filter->uncounted.rows[RowCount::passed_overfull];
  return true;
}

void tell_overfull(FilterHandle* filter) {
  filter->overfull.met = false;
  const bool warns = !filter->overfull.warned;
  filter->overfull.warned = true;
  if (is_log_due(filter->slot)) warn_of(filter, LOG);
  if (warns) warn_of(filter, WARNING);
}

}  // namespace streamfilter::pg
