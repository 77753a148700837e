// How a key is tested and inserted. Its own transaction's changes come first; then the filter;
// then, under the lock of its partition of the table of keys in flight, what unfinished
// transactions have added, and the filter once more, since one of them may have committed in
// between. A new key enters the table under that same lock, so of two transactions that add a key
// at once, one finds the other.
#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/lmgr.h"
#include "storage/procarray.h"
}

#include "core/filter/filter.hpp"
#include "pg/handle/local_filter.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/settings.hpp"
#include "pg/shmem/arrivals.hpp"
#include "pg/shmem/kin.hpp"
#include "pg/shmem/slice_access.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/own_view.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

bool is_in_filter(const FilterHandle* filter, const Element& element) {
  if (filter->header->parameters.k1 > 0)
    return test_in_slices(filter->slot, filter->header, element);
  LWLock* lock = slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash));
  LWLockAcquire(lock, LW_SHARED);
  const bool seen = test(filter->header, element);
  LWLockRelease(lock);
  return seen;
}

// Was the key seen? If so, the filter learns that it was seen again. This takes no commit: the key
// is inserted anyway.
bool test_and_promote(FilterHandle* filter, const Element& element) {
  if (!ops_of(filter->header).learns_from_repeats) return is_in_filter(filter, element);
  LWLock* lock = slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash));
  unsigned position;
  LWLockAcquire(lock, LW_EXCLUSIVE);
  const bool seen = promote(filter->header, element, position);
  LWLockRelease(lock);
  if (position != kNoRank) count_found(filter, position);
  return seen;
}

OwnKey own_key(const TransactionChanges* changes, const Element& element) {
  return changes == nullptr ? OwnKey{} : find_own(changes, element);
}

bool waits(const FilterHandle* filter) {
  return filter->relation->options.conflict == Conflict::wait;
}

void say_what_for(void* arg) {
  const auto* filter = static_cast<const FilterHandle*>(arg);
  errcontext("while waiting for another transaction that adds keys to filter \"%s\"",
             filter->relation->name);
}

// It waits for the end of this one, too.
[[noreturn]] void raise_kin_overflowed(const FilterHandle* filter) {
  ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
          errmsg("too many keys of one distributed transaction for filter \"%s\"",
                 filter->relation->name),
          errdetail("Another connection of the transaction to this node has added more than "
                    "streamfilter.max_in_flight, now %d, has room for.",
                    max_in_flight),
          errhint("Load in smaller transactions, or raise streamfilter.max_in_flight on every node "
                  "and restart the servers."));
  pg_unreachable();
}

// As a unique index waits: until the other (sub)transaction has ended.
void wait_for(const FilterHandle* filter, FullTransactionId other) {
  if (unlikely(is_kin(other))) raise_kin_overflowed(filter);
  pg_atomic_fetch_add_u64(&filter->slot->waits, 1);
  ErrorContextCallback context = {error_context_stack, say_what_for,
                                  const_cast<FilterHandle*>(filter)};
  error_context_stack = &context;
  XactLockTableWait(XidFromFullTransactionId(other), nullptr, nullptr, XLTW_None);
  error_context_stack = context.previous;
}

// Waits until all transactions that have committed have brought their changes in. Until its end a
// transaction is to be waited for by its own id only: those of its savepoints have no locks.
void wait_for_arrivals(const FilterHandle* filter) {
  uint32 at = 0;
  for (;;) {
    const FullTransactionId other = next_arriving(filter->slot, &at);
    if (!FullTransactionIdIsValid(other)) return;
    if (!TransactionIdIsInProgress(XidFromFullTransactionId(other))) wait_for(filter, other);
  }
}

void wait_until_applied(const FilterHandle* filter) {
  wait_for_arrivals(filter);
  resolve_prepared();
}

// What transactions that may be visible have not brought in yet; asked before the filter is looked
// at.
struct Arriving {
  explicit Arriving(const FilterSlot* slot)
      : keys(pg_atomic_read_u32(const_cast<pg_atomic_uint32*>(&slot->arriving_keys)) != 0),
        erasures(pg_atomic_read_u32(const_cast<pg_atomic_uint32*>(&slot->arriving_erasures)) != 0) {
    pg_read_barrier();
  }
  bool may_change(bool seen) const { return seen ? erasures : keys; }

  bool keys, erasures;
};

// What a key that is not this transaction's own meets.
enum class ReserveResult : uint8 {
  seen,     // the filter has it after all
  none,     // it is new, and in the table of keys in flight if that was wanted
  other,    // another transaction has added it
  any_key,  // another transaction has added so many keys that it asks to be waited for
  no_room,  // it is new, but the table is full
};

struct ReserveRequest {
  Owner owner;      // of this transaction
  Owner finished;   // 0, or one that is known to have rolled back
  bool registers;   // enter the table
  bool look_again;  // in the filter: it has changed
  // Results.
  Owner met;
  bool registered;
};

// Do others wait for this transaction before they add any key?
bool has_for_itself(FilterSlot* slot) {
  return pg_atomic_read_u64(&slot->exclusive_xact) ==
         U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
}

// Has the key come into the filter since the first look? `applied` is from before that.
bool has_arrived(const FilterHandle* filter, const Element& element, uint64 applied,
                 const ReserveRequest* request) {
  return request->look_again && pg_atomic_read_u64(&filter->slot->applied) != applied &&
         is_in_filter(filter, element);
}

ReserveResult try_to_reserve(const FilterHandle* filter, const TransactionChanges* changes,
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
  const Owner owner = request->met = owner_of(entry);
  const bool own = owner != 0 && TransactionIdIsCurrentTransactionId(
                                     XidFromFullTransactionId(transaction_of(owner)));
  const uint64 exclusive_xact = pg_atomic_read_u64(&slot->exclusive_xact);
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

// The table does not take this transaction's next key. With conflict 'wait' the transaction takes
// the whole filter instead: others wait for it before they add any key. There is one at a time.
void overflow(FilterHandle* filter, TransactionChanges* changes) {
  FilterSlot* slot = filter->slot;
  resolve_prepared();
  if (waits(filter)) {
    const uint64 self = U64FromFullTransactionId(GetTopFullTransactionId());
    for (;;) {
      uint64 other = 0;
      if (pg_atomic_compare_exchange_u64(&slot->exclusive_xact, &other, self) || other == self)
        break;
      wait_for(filter, FullTransactionIdFromU64(other));
    }
    changes->overflowed = true;
    pass_all_partitions();
    withdraw_registrations(changes);
  }
  changes->overflowed = true;
  pg_atomic_fetch_add_u64(&slot->overflowed, 1);
}

// Adds a key that is new as far as this transaction's own changes and a first look into the filter
// tell. False: it was seen after all.
bool reserve(FilterHandle* filter, TransactionChanges* changes, const Element& element,
             const IndexHint& hint, uint64 applied, bool look_again) {
  reserve_change(changes);
  ReserveRequest request{};
  request.owner = owner_of_new_key(changes);
  request.look_again = look_again;
  Owner arrived = 0;
  for (;;) {
    request.registers = !changes->overflowed;
    switch (try_to_reserve(filter, changes, element, applied, &request)) {
      case ReserveResult::seen: return false;
      case ReserveResult::none:
        if (request.registered)
          append_registered(changes, element, hint);
        else
          append_change(changes, ChangeType::add, element, hint);
        return true;
      case ReserveResult::no_room: overflow(filter, changes); continue;
      case ReserveResult::any_key:
        wait_for(filter, FullTransactionIdFromU64(request.met));
        continue;
      case ReserveResult::other: break;
    }
    switch (xact_status(transaction_of(request.met))) {
      case XactStatus::committed:
        // Its keys are on their way into the filter. Not all may arrive: it may have deleted some.
        if (filter->relation->options.conflict == Conflict::discard || request.met == arrived)
          return false;
        arrived = request.met;
        wait_until_applied(filter);
        continue;
      case XactStatus::aborted: request.finished = request.met; continue;
      case XactStatus::running: break;
    }
    // It commits with this one, or rolls back with it.
    if (unlikely(is_kin(transaction_of(request.met)))) return false;
    switch (filter->relation->options.conflict) {
      case Conflict::wait: wait_for(filter, transaction_of(request.met)); continue;
      case Conflict::discard: return false;
      case Conflict::admit: append_change(changes, ChangeType::add, element, hint); return true;
    }
  }
}

TransactionChanges* begin(const FilterHandle* filter) {
  return begin_changes(filter->slot, filter->header,
                       filter->relation->options.persistence == Persistence::logged);
}

// The transaction that has added the key and committed, but whose keys are not all in the filter
// yet; 0: none.
Owner find_arriving(const FilterHandle* filter, const Element& element) {
  const InFlightTag tag = in_flight_tag(filter->slot_generation, element.hash);
  InFlightPartition* partition = partition_of(tag);
  if (is_empty_partition(partition)) return 0;
  LWLockAcquire(lock_of(partition), LW_SHARED);
  const Owner owner = owner_of(find_entry(partition, tag));
  LWLockRelease(lock_of(partition));
  const bool arrives =
      owner != 0 &&
      !TransactionIdIsCurrentTransactionId(XidFromFullTransactionId(transaction_of(owner))) &&
      xact_status(transaction_of(owner)) == XactStatus::committed;
  return arrives ? owner : 0;
}

// In this order: on its way a key is in both places for a while.
bool is_known(const FilterHandle* filter, const Element& element) {
  return find_arriving(filter, element) != 0 || is_in_filter(filter, element);
}

// Where test_and_insert will look in shared memory.
void prefetch_shared(const FilterHandle* filter, const TransactionChanges* changes,
                     const Element& element, Prefetches& prefetches) {
  prefetch(filter->header, element, prefetches);
  if (changes == nullptr || !changes->overflowed)
    prefetch_in_flight(in_flight_tag(filter->slot_generation, element.hash), prefetches);
}

TransactionChanges* begin_change(FilterHandle* filter) {
  TransactionChanges* changes = begin(filter);
  reserve_change(changes);
  return changes;
}

// Raises unless what the filter holds now can take the value.
void require_fit(FilterHandle* filter, const Header* value, int64 slice) {
  const Parameters& parameters = filter->header->parameters;
  for (uint32 i = 0; i < parameters.slices; ++i) {
    if (slice != kAllSlices && slice != i) continue;
    const ConstSlice from = slice_at(value, slice == kAllSlices ? i : 0);
    Problem problem;
    LWLock* lock = slice_lock(filter->slot, i);
    LWLockAcquire(lock, LW_SHARED);
    const bool fits = fits_slice(parameters, as_const(slice_at(filter->header, i)), from, problem);
    LWLockRelease(lock);
    if (!fits) raise(problem);
  }
}

// What lasts until the change is applied is a copy.
void add_value(FilterHandle* filter, const Header* value, int64 slice, Size bytes) {
  TransactionChanges* changes = begin_change(filter);
  auto* copy = static_cast<MergedValue*>(
      MemoryContextAllocHuge(TopTransactionContext, sizeof(MergedValue) + bytes));
  copy->slice = slice;
  memcpy(static_cast<void*>(copy + 1), value, bytes);
  Element address;
  address.hash = reinterpret_cast<uintptr_t>(copy);
  append_change(changes, ChangeType::merge, address);
}

}  // namespace

bool test_and_insert_local_key(FilterHandle* filter, const Element& element) {
  FilterSlot* slot = filter->slot;
  TransactionChanges* changes = find_changes(slot, filter->slot_generation);
  const OwnKey own = own_key(changes, element);
  if (own.view == OwnView::added) {
    if (ops_of(filter->header).learns_from_repeats) {
      reserve_change(changes);
      append_change(changes, ChangeType::repeat, as_accepted(changes, element, own.hint), own.hint);
    }
    return true;
  }
  const bool in_sight = own.view == OwnView::untouched;
  const uint64 applied = pg_atomic_read_u64(&slot->applied);
  const Arriving arriving(slot);
  bool seen = in_sight && test_and_promote(filter, element);
  if (unlikely(in_sight && arriving.may_change(seen))) {
    wait_until_applied(filter);
    seen = seen && test_and_promote(filter, element);
  }
  if (seen) return true;
  if (changes == nullptr) changes = begin(filter);
  return !reserve(filter, changes, element, own.hint, applied, in_sight);
}

bool reserve_local_key(FilterHandle* filter, const Element& element) {
  TransactionChanges* changes = begin(filter);
  const OwnKey own = own_key(changes, element);
  if (own.view == OwnView::added) return true;
  if (Arriving(filter->slot).keys) wait_until_applied(filter);
  return reserve(filter, changes, element, own.hint, 0, false);
}

void insert_local_key(FilterHandle* filter, const Element& element) {
  const TransactionChanges* changes = find_changes(filter->slot, filter->slot_generation);
  if (own_key(changes, element).view != OwnView::added)
    append_change(begin_change(filter), ChangeType::add, element);
}

PartialReservation reserve_partial_key(FilterHandle* filter, const Element& element) {
  const OwnView view = own_key(find_changes(filter->slot, filter->slot_generation), element).view;
  if (view == OwnView::added) return PartialReservation::set;
  if (!reserve_local_key(filter, element)) return PartialReservation::taken;
  return view == OwnView::untouched && is_in_filter(filter, element) ? PartialReservation::set
                                                                     : PartialReservation::unset;
}

bool insert_partial_key(FilterHandle* filter, const Element& element) {
  const bool was_set = test_local_key(filter, element);
  insert_local_key(filter, element);
  return was_set;
}

bool test_local_key(const FilterHandle* filter, const Element& element) {
  const TransactionChanges* changes = find_changes(filter->slot, filter->slot_generation);
  const OwnView view = own_key(changes, element).view;
  if (view != OwnView::untouched) return view == OwnView::added;
  const Arriving arriving(filter->slot);
  const bool seen = is_known(filter, element);
  if (likely(!arriving.may_change(seen))) return seen;
  wait_until_applied(filter);
  return is_known(filter, element);
}

void prefetch_local_key(const FilterHandle* filter, const Element& element) {
  Prefetches prefetches;
  prefetch_shared(filter, find_changes(filter->slot, filter->slot_generation), element, prefetches);
  prefetches.start();
}

void prefetch_local_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                         int count) {
  const TransactionChanges* changes = find_changes(filter->slot, filter->slot_generation);
  Prefetches prefetches;
  for (int i = 0; i < count; ++i) {
    if (has_key != nullptr && !has_key[i]) continue;
    prefetch_shared(filter, changes, elements[i], prefetches);
    if (changes != nullptr) prefetch_index(&changes->log, elements[i].hash, prefetches);
  }
  prefetches.start();
  if (changes == nullptr) return;
  for (int i = 0; i < count; ++i)
    if (has_key == nullptr || has_key[i])
      prefetch_change(&changes->log, elements[i].hash, prefetches);
  prefetches.start();
}

bool erase_local_key(FilterHandle* filter, const Element& element) {
  // What is forgotten must not arrive afterwards.
  if (Arriving(filter->slot).keys || find_arriving(filter, element) != 0)
    wait_until_applied(filter);
  if (!test_local_key(filter, element)) return false;
  append_change(begin_change(filter), ChangeType::erase, element);
  return true;
}

void reset_local_filter(FilterHandle* filter) {
  // The lock on the relation keeps other transactions away, also prepared ones; what is left of
  // such that have ended must not come after this.
  resolve_prepared();
  append_change(begin_change(filter), ChangeType::reset, Element{});
}

void merge_into_local_filter(FilterHandle* filter, const Header* value, int64 slice) {
  require_fit(filter, value, slice);
  add_value(filter, value, slice,
            slice == kAllSlices ? value->parameters.memory
                                : sizeof(Header) + value->parameters.slice_bytes);
}

void replace_local_filter(FilterHandle* filter, const Header* value) {
  add_value(filter, value, kInPlace, value->parameters.memory);
}

Header* copy_local_filter(FilterHandle* filter) {
  wait_until_applied(filter);
  const Parameters& parameters = filter->header->parameters;
  auto* copy = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, parameters.memory, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  memcpy(static_cast<void*>(copy), filter->header, sizeof(Header));
  for (uint32 i = 0; i < parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    LWLock* lock = slice_lock(filter->slot, i);
    LWLockAcquire(lock, LW_SHARED);
    memcpy(static_cast<void*>(slice_at(copy, i).state), slice_at(filter->header, i).state,
           parameters.slice_bytes);
    LWLockRelease(lock);
  }
  if (const TransactionChanges* changes = find_changes(filter->slot, filter->slot_generation))
    apply_changes(&changes->log, copy, nullptr);
  return copy;
}

Header* copy_local_slice(FilterHandle* filter, uint32 slice) {
  const Parameters& parameters = filter->header->parameters;
  wait_until_applied(filter);
  auto* copy = static_cast<Header*>(
      MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Header) + parameters.slice_bytes));
  memcpy(static_cast<void*>(copy), filter->header, sizeof(Header));
  if (find_changes(filter->slot, filter->slot_generation) != nullptr) {
    Header* all = copy_local_filter(filter);
    memcpy(static_cast<void*>(slice_at(copy, 0).state), slice_at(all, slice).state,
           parameters.slice_bytes);
    pfree(all);
    return copy;
  }
  LWLock* lock = slice_lock(filter->slot, slice);
  LWLockAcquire(lock, LW_SHARED);
  memcpy(static_cast<void*>(slice_at(copy, 0).state), slice_at(filter->header, slice).state,
         parameters.slice_bytes);
  LWLockRelease(lock);
  return copy;
}

}  // namespace streamfilter::pg
