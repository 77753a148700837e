// How a key is tested and inserted: look into the transaction's own changes, then into the filter,
// then reserve a new key (key_reservation.hpp).
#include "pg/server/postgres.hpp"

#include "pg/handle/judge_key.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/handle/overfull.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/server/shared_memory.hpp"
#include "pg/shmem/state_copy.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

// Was the key seen? If so, the filter promotes it at once, without waiting for commit: the key is
// inserted anyway.
bool test_and_promote(FilterHandle* filter, const Element& element) {
  if (!ops_of(filter->header).learns_from_repeats) return is_in_filter(filter, element);
  LWLock* lock = slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash));
  unsigned position;
  LWLockAcquire(lock, LW_EXCLUSIVE);
  const bool seen = promote(filter->header, element, position);
  LWLockRelease(lock);
  if (position != kNoRank) count_found(filter, position);
  if (seen) promote_in_copy(filter->slot, element);
  return seen;
}

// A committed transaction that has added the key but has not yet brought all its keys into the
// filter; 0 if none.
Owner find_arriving(const FilterHandle* filter, const Element& element) {
  const InFlightTag tag = in_flight_tag(filter, element);
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

// In this order, because an arriving key is in both places for a while.
bool is_known(const FilterHandle* filter, const Element& element) {
  return find_arriving(filter, element) != 0 || is_in_filter(filter, element);
}

// Prefetches the shared memory that test_and_insert will read.
void prefetch_shared(const FilterHandle* filter, const TransactionChanges* changes,
                     const Element& element, Prefetches& prefetches) {
  prefetch(filter->header, element, prefetches);
  if (changes == nullptr || !changes->overflowed)
    prefetch_in_flight(in_flight_tag(filter, element), prefetches);
}

TransactionChanges* begin_change(FilterHandle* filter) {
  TransactionChanges* changes = begin(filter);
  reserve_change(changes);
  return changes;
}

// Raises unless the filter's current state can take the value.
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

// Copies the value, because the change lasts until it is applied.
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

bool judge(FilterHandle* filter, TransactionChanges* changes, const Element& element) {
  FilterSlot* slot = filter->slot;
  await_key(filter, element);
  const OwnKey own = find_own(changes, element);
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
  if (seen && !lets_pass(filter, element)) return true;
  if (changes == nullptr) changes = begin(filter);
  return test_and_reserve(filter, changes, element, own.hint, applied, in_sight);
}

}  // namespace

bool test_and_insert_local_key(FilterHandle* filter, const Element& element) {
  TransactionChanges* changes = changes_of(filter);
  Prefetches prefetches;
  prefetch_shared(filter, changes, element, prefetches);
  prefetches.start();
  return judge(filter, changes, element);
}

bool test_and_insert_fetched_local_key(FilterHandle* filter, const Element& element) {
  return judge(filter, changes_of(filter), element);
}

bool reserve_local_key(FilterHandle* filter, const Element& element, bool at_once) {
  await_key(filter, element);
  TransactionChanges* changes = begin(filter);
  const OwnKey own = find_own(changes, element);
  if (own.view == OwnView::added) return true;
  if (Arriving(filter->slot).keys) wait_until_applied(filter);
  return !test_and_reserve(filter, changes, element, own.hint, 0, false, at_once);
}

void insert_local_key(FilterHandle* filter, const Element& element) {
  await_key(filter, element);
  const TransactionChanges* changes = changes_of(filter);
  if (find_own(changes, element).view != OwnView::added)
    append_change(begin_change(filter), ChangeType::add, element);
}

PartialReservation reserve_partial_key(FilterHandle* filter, const Element& element) {
  const OwnView view = find_own(changes_of(filter), element).view;
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
  await_key(filter, element);
  const TransactionChanges* changes = changes_of(filter);
  const OwnView view = find_own(changes, element).view;
  if (view != OwnView::untouched) return view == OwnView::added;
  const Arriving arriving(filter->slot);
  const bool seen = is_known(filter, element);
  if (likely(!arriving.may_change(seen))) return seen;
  wait_until_applied(filter);
  return is_known(filter, element);
}

void prefetch_local_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                         int count) {
  const TransactionChanges* changes = changes_of(filter);
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
      prefetch_change(&changes->log, guess_key(&changes->log, elements[i].hash), prefetches);
  prefetches.start();
}

bool erase_local_key(FilterHandle* filter, const Element& element) {
  // A forgotten key must not arrive afterwards.
  if (Arriving(filter->slot).keys || find_arriving(filter, element) != 0)
    wait_until_applied(filter);
  if (!test_local_key(filter, element)) return false;
  append_change(begin_change(filter), ChangeType::erase, element);
  return true;
}

// What is not restored yet need not be: nobody restores it while the relation is locked.
void reset_local_filter(FilterHandle* filter) {
  // The lock on the relation keeps other transactions away, also prepared ones; what is left of
  // such that have ended must not come after this.
  resolve_prepared(filter->relid);
  append_change(begin_change(filter), ChangeType::reset, Element{});
}

void merge_into_local_filter(FilterHandle* filter, const Header* value, int64 slice) {
  require_fit(filter, value, slice);
  add_value(filter, value, slice,
            slice == kAllSlices ? value->parameters.memory
                                : sizeof(Header) + value->parameters.slice_bytes);
}

Header* copy_local_filter(FilterHandle* filter) {
  wait_until_applied(filter);
  const Parameters& parameters = filter->header->parameters;
  auto* copy = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, parameters.memory, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
  memcpy(static_cast<void*>(copy), filter->header, sizeof(Header));
  for (uint32 i = 0; i < parameters.slices; ++i) {
    CHECK_FOR_INTERRUPTS();
    const LockHeld held(slice_lock(filter->slot, i), LW_SHARED);
    memcpy(static_cast<void*>(slice_at(copy, i).state), slice_at(filter->header, i).state,
           parameters.slice_bytes);
  }
  if (const TransactionChanges* changes = changes_of(filter))
    apply_changes(&changes->log, copy, nullptr);
  return copy;
}

Header* copy_local_slice(FilterHandle* filter, uint32 slice) {
  const Parameters& parameters = filter->header->parameters;
  wait_until_applied(filter);
  auto* copy = static_cast<Header*>(
      MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Header) + parameters.slice_bytes));
  memcpy(static_cast<void*>(copy), filter->header, sizeof(Header));
  if (changes_of(filter) != nullptr) {
    Header* all = copy_local_filter(filter);
    memcpy(static_cast<void*>(slice_at(copy, 0).state), slice_at(all, slice).state,
           parameters.slice_bytes);
    pfree(all);
    return copy;
  }
  const LockHeld held(slice_lock(filter->slot, slice), LW_SHARED);
  memcpy(static_cast<void*>(slice_at(copy, 0).state), slice_at(filter->header, slice).state,
         parameters.slice_bytes);
  return copy;
}

}  // namespace streamfilter::pg
