// How a key is judged. Its own transaction's changes come first; then the filter; then, under the
// lock of its part of the table of keys in flight, what unfinished transactions have added, and the
// filter once more, since one of them may have committed in between. A new key enters the table
// under that same lock, so of two transactions that add a key at once, one finds the other.
#include "pg/server/postgres.hpp"

extern "C" {
#include "storage/lmgr.h"
}

#include "core/filter/filter.hpp"
#include "pg/handle/local_filter.hpp"
#include "pg/server/problem_report.hpp"
#include "pg/shmem/slice_access.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

bool is_in_filter(const NamedFilter* filter, const Element& element) {
  if (filter->header->parameters.k1 > 0)
    return test_in_slices(filter->slot, filter->header, element);
  LWLock* lock = slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash));
  LWLockAcquire(lock, LW_SHARED);
  const bool seen = test(filter->header, element);
  LWLockRelease(lock);
  return seen;
}

// Was the key seen? If so, the filter learns that it was seen again. This takes no commit: the key
// is remembered anyway.
bool touch(NamedFilter* filter, const Element& element) {
  if (!ops_of(filter->header).learns_from_repeats) return is_in_filter(filter, element);
  LWLock* lock = slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash));
  unsigned position;
  LWLockAcquire(lock, LW_EXCLUSIVE);
  const bool seen = refresh(filter->header, element, position);
  LWLockRelease(lock);
  if (position != kNoPosition) count_found(filter, position);
  return seen;
}

OwnKey own_key(const Pending* pending, const Element& element) {
  return pending == nullptr ? OwnKey{} : find_own(pending, element);
}

bool waits(const NamedFilter* filter) { return filter->relation->host.conflict == Conflict::wait; }

void say_what_for(void* filter) {
  errcontext("while waiting for another transaction that adds keys to filter \"%s\"",
             static_cast<const NamedFilter*>(filter)->relation->name);
}

// As a unique index waits: until the other (sub)transaction has ended.
void wait_for(NamedFilter* filter, FullTransactionId other) {
  pg_atomic_fetch_add_u64(&filter->slot->waits, 1);
  ErrorContextCallback context = {error_context_stack, say_what_for, filter};
  error_context_stack = &context;
  XactLockTableWait(XidFromFullTransactionId(other), nullptr, nullptr, XLTW_None);
  error_context_stack = context.previous;
}

// Waits until a transaction that has committed has brought all its changes in.
void let_arrive(NamedFilter* filter, FullTransactionId other) {
  wait_for(filter, other);
  settle_prepared();
}

// What a key that is not this transaction's own meets.
enum class Meeting : uint8 {
  seen,     // the filter has it after all
  none,     // it is new, and in the table of keys in flight if that was wanted
  other,    // another transaction has added it
  any_key,  // another transaction has added so many keys that it asks to be waited for
  no_room,  // it is new, but the table is full
};

struct Attempt {
  Owner owner;      // of this transaction
  Owner finished;   // 0, or one that is known to have rolled back
  bool announce;    // enter the table
  bool look_again;  // in the filter: it has changed
  // Results.
  Owner met;
  bool announced;
};

Meeting attempt(const NamedFilter* filter, const Pending* pending, const Element& element,
                uint64 applied, Attempt* attempt) {
  FilterSlot* slot = filter->slot;
  const InFlightTag tag = in_flight_tag(pending->generation, element.hash);
  InFlightPart* part = part_of(tag);
  const uint64 self = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
  attempt->announced = false;
  // Nobody can add a key to a filter that this transaction has claimed.
  if (pg_atomic_read_u64(&slot->claimed_by) == self && is_empty_part(part))
    return attempt->look_again && pg_atomic_read_u64(&slot->applied) != applied &&
                   is_in_filter(filter, element)
               ? Meeting::seen
               : Meeting::none;
  Meeting meeting = Meeting::none;
  LWLockAcquire(lock_of(part), LW_EXCLUSIVE);
  const Owner owner = find_owner(part, tag);
  const bool own = owner != 0 && TransactionIdIsCurrentTransactionId(
                                     XidFromFullTransactionId(transaction_of(owner)));
  const uint64 claimed_by = pg_atomic_read_u64(&slot->claimed_by);
  attempt->met = owner;
  if (owner != 0 && !own && owner != attempt->finished) {
    meeting = Meeting::other;
  } else if (claimed_by != 0 && claimed_by != self) {
    meeting = Meeting::any_key;
    attempt->met = claimed_by;
  } else if (attempt->look_again && pg_atomic_read_u64(&slot->applied) != applied &&
             is_in_filter(filter, element)) {
    meeting = Meeting::seen;
  } else if (owner != 0 && !own) {
    take_over(part, tag, attempt->owner);
    attempt->announced = true;
  } else if (owner == 0 && attempt->announce) {
    attempt->announced = add_in_flight(part, tag, attempt->owner, pending->announced);
    if (!attempt->announced) meeting = Meeting::no_room;
  }
  LWLockRelease(lock_of(part));
  return meeting;
}

// The table does not take this transaction's next key. With conflict 'wait' the transaction claims
// the whole filter instead: others wait for it before they add any key. There is one at a time.
void overflow(NamedFilter* filter, Pending* pending) {
  FilterSlot* slot = filter->slot;
  settle_prepared();
  if (waits(filter)) {
    const uint64 self = U64FromFullTransactionId(GetTopFullTransactionId());
    for (;;) {
      uint64 other = 0;
      if (pg_atomic_compare_exchange_u64(&slot->claimed_by, &other, self) || other == self) break;
      wait_for(filter, FullTransactionIdFromU64(other));
    }
    pending->overflowed = true;
    pass_all_parts();
    withdraw_announcements(pending);
  }
  pending->overflowed = true;
  pg_atomic_fetch_add_u64(&slot->overflowed, 1);
}

// Adds a key that is new as far as this transaction's own changes and a first look into the filter
// tell. False: it was seen after all.
bool claim(NamedFilter* filter, Pending* pending, const Element& element, const KeySpot& spot,
           uint64 applied, bool look_again) {
  reserve_pending(pending);
  Attempt now{};
  now.owner = owner_of_new_key(pending);
  now.look_again = look_again;
  Owner arrived = 0;
  for (;;) {
    now.announce = !pending->overflowed;
    switch (attempt(filter, pending, element, applied, &now)) {
      case Meeting::seen: return false;
      case Meeting::none:
        if (now.announced)
          append_announced(pending, element, spot);
        else
          append_pending(pending, Change::add, element, spot);
        return true;
      case Meeting::no_room: overflow(filter, pending); continue;
      case Meeting::any_key: wait_for(filter, FullTransactionIdFromU64(now.met)); continue;
      case Meeting::other: break;
    }
    switch (fate_of(transaction_of(now.met))) {
      case Fate::committed:
        // Its keys are on their way into the filter. Not all may arrive: it may have deleted some.
        if (filter->relation->host.conflict == Conflict::discard || now.met == arrived)
          return false;
        arrived = now.met;
        let_arrive(filter, transaction_of(arrived));
        continue;
      case Fate::aborted: now.finished = now.met; continue;
      case Fate::running: break;
    }
    switch (filter->relation->host.conflict) {
      case Conflict::wait: wait_for(filter, transaction_of(now.met)); continue;
      case Conflict::discard: return false;
      case Conflict::admit: append_pending(pending, Change::add, element, spot); return true;
    }
  }
}

Pending* begin(const NamedFilter* filter) {
  return begin_pending(filter->slot, filter->header,
                       filter->relation->host.persistence == Persistence::logged);
}

// The transaction that has added the key and committed, but whose keys are not all in the filter
// yet; 0: none.
Owner find_arriving(const NamedFilter* filter, const Element& element) {
  const InFlightTag tag = in_flight_tag(filter->slot_generation, element.hash);
  InFlightPart* part = part_of(tag);
  if (is_empty_part(part)) return 0;
  LWLockAcquire(lock_of(part), LW_SHARED);
  const Owner owner = find_owner(part, tag);
  LWLockRelease(lock_of(part));
  const bool arrives =
      owner != 0 &&
      !TransactionIdIsCurrentTransactionId(XidFromFullTransactionId(transaction_of(owner))) &&
      fate_of(transaction_of(owner)) == Fate::committed;
  return arrives ? owner : 0;
}

// Where judging a key will look in shared memory.
void prefetch_shared(const NamedFilter* filter, const Pending* pending, const Element& element,
                     Prefetches& prefetches) {
  prefetch(filter->header, element, prefetches);
  if (pending == nullptr || !pending->overflowed)
    prefetch_in_flight(in_flight_tag(filter->slot_generation, element.hash), prefetches);
}

Pending* begin_change(NamedFilter* filter) {
  Pending* pending = begin(filter);
  reserve_pending(pending);
  return pending;
}

// Raises unless what the filter holds now can take the value.
void require_fit(NamedFilter* filter, const Header* value, int64 slice) {
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

}  // namespace

bool remember_local_key(NamedFilter* filter, const Element& element) {
  FilterSlot* slot = filter->slot;
  Pending* pending = find_pending(slot, filter->slot_generation);
  const OwnKey own = own_key(pending, element);
  if (own.view == OwnView::added) {
    if (ops_of(filter->header).learns_from_repeats) {
      reserve_pending(pending);
      append_pending(pending, Change::repeat, as_accepted(pending, element, own.spot), own.spot);
    }
    return true;
  }
  const bool in_sight = own.view == OwnView::untouched;
  const uint64 applied = pg_atomic_read_u64(&slot->applied);
  if (in_sight && touch(filter, element)) return true;
  if (pending == nullptr) pending = begin(filter);
  return !claim(filter, pending, element, own.spot, applied, in_sight);
}

bool claim_local_key(NamedFilter* filter, const Element& element) {
  Pending* pending = begin(filter);
  const OwnKey own = own_key(pending, element);
  return own.view == OwnView::added || claim(filter, pending, element, own.spot, 0, false);
}

void put_local_key(NamedFilter* filter, const Element& element) {
  const Pending* pending = find_pending(filter->slot, filter->slot_generation);
  if (own_key(pending, element).view != OwnView::added)
    append_pending(begin_change(filter), Change::add, element);
}

PartClaim claim_part_of_key(NamedFilter* filter, const Element& element) {
  const OwnView view = own_key(find_pending(filter->slot, filter->slot_generation), element).view;
  if (view == OwnView::added) return PartClaim::set;
  if (!claim_local_key(filter, element)) return PartClaim::taken;
  return view == OwnView::untouched && is_in_filter(filter, element) ? PartClaim::set
                                                                     : PartClaim::unset;
}

bool put_part_of_key(NamedFilter* filter, const Element& element) {
  const bool was_set = test_local_key(filter, element);
  put_local_key(filter, element);
  return was_set;
}

bool test_local_key(const NamedFilter* filter, const Element& element) {
  const Pending* pending = find_pending(filter->slot, filter->slot_generation);
  const OwnView view = own_key(pending, element).view;
  if (view != OwnView::untouched) return view == OwnView::added;
  // In this order: on its way a key is in both places for a while.
  return find_arriving(filter, element) != 0 || is_in_filter(filter, element);
}

void prefetch_local_key(const NamedFilter* filter, const Element& element) {
  Prefetches prefetches;
  prefetch_shared(filter, find_pending(filter->slot, filter->slot_generation), element, prefetches);
  prefetches.start();
}

void prefetch_local_keys(const NamedFilter* filter, const Element* elements, const bool* has_key,
                         int count) {
  const Pending* pending = find_pending(filter->slot, filter->slot_generation);
  Prefetches prefetches;
  for (int i = 0; i < count; ++i) {
    if (has_key != nullptr && !has_key[i]) continue;
    prefetch_shared(filter, pending, elements[i], prefetches);
    if (pending != nullptr) prefetch_place(&pending->log, elements[i].hash, prefetches);
  }
  prefetches.start();
  if (pending == nullptr) return;
  for (int i = 0; i < count; ++i)
    if (has_key == nullptr || has_key[i])
      prefetch_change(&pending->log, elements[i].hash, prefetches);
  prefetches.start();
}

bool erase_local_key(NamedFilter* filter, const Element& element) {
  // What is forgotten must not arrive afterwards.
  if (const Owner other = find_arriving(filter, element)) let_arrive(filter, transaction_of(other));
  if (!test_local_key(filter, element)) return false;
  append_pending(begin_change(filter), Change::erase, element);
  return true;
}

void reset_local_filter(NamedFilter* filter) {
  // The lock on the relation keeps other transactions away, also prepared ones; what is left of
  // such that have ended must not come after this.
  settle_prepared();
  append_pending(begin_change(filter), Change::reset, Element{});
}

void merge_into_local_filter(NamedFilter* filter, const Header* value, int64 slice) {
  require_fit(filter, value, slice);
  Pending* pending = begin_change(filter);
  const Size bytes = slice == kAllSlices ? value->parameters.memory
                                         : sizeof(Header) + value->parameters.slice_bytes;
  auto* copy = static_cast<MergedValue*>(
      MemoryContextAllocHuge(TopTransactionContext, sizeof(MergedValue) + bytes));
  copy->slice = slice;
  memcpy(static_cast<void*>(copy + 1), value, bytes);
  Element address;
  address.hash = reinterpret_cast<uintptr_t>(copy);
  append_pending(pending, Change::merge, address);
}

Header* copy_local_filter(NamedFilter* filter) {
  settle_prepared();
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
  if (const Pending* pending = find_pending(filter->slot, filter->slot_generation))
    play_changes(&pending->log, copy, nullptr);
  return copy;
}

Header* copy_local_slice(NamedFilter* filter, uint32 slice) {
  const Parameters& parameters = filter->header->parameters;
  settle_prepared();
  auto* copy = static_cast<Header*>(
      MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Header) + parameters.slice_bytes));
  memcpy(static_cast<void*>(copy), filter->header, sizeof(Header));
  if (find_pending(filter->slot, filter->slot_generation) != nullptr) {
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
