// How a key is tested and inserted: look into the transaction's own changes, then into the filter,
// then reserve a new key (key_reservation.hpp).
#include "pg/server/postgres.hpp"

#include "pg/handle/judge_key.hpp"
#include "pg/handle/key_builder.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"

namespace streamfilter::pg {
namespace {

TransactionChanges* begin_change(FilterHandle* filter) {
  TransactionChanges* changes = begin(filter);
  reserve_own_change(changes);
  return changes;
}

// A repeat has moved the time of its key: the log says so, or a restart would move it back.
void note_renewal(FilterHandle* filter, const Element& element) {
  if (filter->relation->options.persistence == Persistence::logged)
    append_own_change(begin_change(filter), ChangeType::promote, element);
}

// Was the key seen? If so, the filter promotes it at once, without waiting for commit: the key is
// inserted anyway.
bool test_and_promote(FilterHandle* filter, const Element& element) {
  if (!learns_from_repeats(filter->header->parameters)) return is_in_filter(filter, element);
  LWLock* lock = slice_lock(filter->slot, slice_of(filter->header->parameters, element.hash));
  unsigned position;
  LWLockAcquire(lock, LW_EXCLUSIVE);
  const bool is_newer = renews(filter->header, element),
             seen = promote(filter->header, element, position);
  LWLockRelease(lock);
  if (seen && is_newer) note_renewal(filter, element);
  if (position != kNoRank) count_found(filter, position);
  if (seen) promote_in_copy(filter->slot, element);
  return seen;
}

// A committed transaction that has added the key but has not yet brought all its keys into the
// filter; 0 if none.
Owner find_arriving(const FilterHandle* filter, const Element& element) {
  const InFlightTag tag = in_flight_tag_of(filter, element);
  InFlightPartition* partition = partition_of(tag);
  if (is_empty_partition(partition)) return 0;
  LWLockAcquire(lock_of(partition), LW_SHARED);
  const Owner owner = owner_of_entry(find_entry(partition, tag));
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
  append_own_change(changes, ChangeType::merge, address);
}

// A repeat of this transaction's own key, for kinds that learn from repeats.
[[gnu::always_inline]] inline void note_repeat(TransactionChanges* changes, const Element& element,
                                               const IndexHint& hint) {
  reserve_own_change(changes);
  append_own_change(changes, ChangeType::repeat, as_accepted(changes, element, hint), hint);
}

// The own changes as an event to be judged sees them.
[[gnu::always_inline]] inline OwnKey as_judged(const FilterHandle* filter,
                                               const TransactionChanges* changes,
                                               const Element& element, OwnKey own) {
  if (unlikely(comes_late(filter, changes, element))) own.view = OwnView::late;
  return own;
}

// ---- for other purposes than to be judged -------------------------------------------------------

bool was_seen(const FilterHandle* filter, const Element& element) {
  await_key(filter, element);
  const OwnView view = find_own(changes_of(filter), element).view;
  if (view != OwnView::untouched) return view == OwnView::added;
  const Arriving arriving(filter->slot);
  const bool seen = is_known(filter, element);
  if (likely(!arriving.may_change(seen))) return seen;
  wait_until_applied(filter);
  return is_known(filter, element);
}

Verdict take_as_new(FilterHandle* filter, const Element& element, bool at_once) {
  await_key(filter, element);
  TransactionChanges* changes = begin(filter);
  const OwnKey own = find_own(changes, element);
  if (own.view == OwnView::added) return Verdict::fresh;
  if (Arriving(filter->slot).keys) wait_until_applied(filter);
  return test_and_reserve(filter, changes, element, own.hint, 0, false, at_once);
}

Verdict reserve_bits(FilterHandle* filter, const Element& element) {
  const OwnView view = find_own(changes_of(filter), element).view;
  if (view == OwnView::added) return Verdict::seen;
  if (take_as_new(filter, element, false) != Verdict::fresh) return Verdict::taken;
  return view == OwnView::untouched && is_in_filter(filter, element) ? Verdict::seen
                                                                     : Verdict::fresh;
}

void put_key(FilterHandle* filter, const Element& element) {
  await_key(filter, element);
  if (find_own(changes_of(filter), element).view != OwnView::added)
    append_own_change(begin_change(filter), ChangeType::add, element);
}

pg_noinline Verdict judge_otherwise(FilterHandle* filter, const Element& element, Intent intent) {
  switch (intent) {
    case Intent::take:
    case Intent::reserve: return take_as_new(filter, element, intent == Intent::take);
    case Intent::reserve_bits: return reserve_bits(filter, element);
    case Intent::put: put_key(filter, element); return Verdict::fresh;
    case Intent::take_back:
      if (TransactionChanges* changes = changes_of(filter)) take_back_key(changes, element.hash);
      return Verdict::fresh;
    case Intent::erase:
      // A forgotten key must not arrive afterwards.
      if (Arriving(filter->slot).keys || find_arriving(filter, element) != 0)
        wait_until_applied(filter);
      break;
    default: break;
  }
  const bool seen = was_seen(filter, element);
  if (intent == Intent::put_bits || (intent == Intent::learn && !seen)) put_key(filter, element);
  if (intent == Intent::erase && seen) erase_reserved(filter, begin_change(filter), element);
  return seen ? Verdict::seen : Verdict::fresh;
}

}  // namespace

// ---- a key that is judged -----------------------------------------------------------------------

Verdict judge_local_key(FilterHandle* filter, const Element& element, Intent intent) {
  if (unlikely(intent > Intent::remember)) return judge_otherwise(filter, element, intent);
  TransactionChanges* changes = changes_of(filter);
  if (intent != Intent::insert_fetched) {
    Prefetches prefetches;
    prefetch(filter->header, element, prefetches);
    if (changes == nullptr || !changes->overflowed)
      prefetch_in_flight(in_flight_tag_of(filter, element), prefetches);
    prefetches.start();
  }
  await_key(filter, element);
  const OwnKey own = as_judged(filter, changes, element, find_own(changes, element));
  if (own.view == OwnView::added) {
    if (learns_from_repeats(filter->header->parameters)) note_repeat(changes, element, own.hint);
    return Verdict::seen;
  }
  const bool in_sight = own.view == OwnView::untouched;
  const uint64 applied = pg_atomic_read_u64(&filter->slot->applied);
  const Arriving arriving(filter->slot);
  bool seen = in_sight && test_and_promote(filter, element);
  if (unlikely(in_sight && arriving.may_change(seen))) {
    seen ? await_erasures(filter, element) : wait_until_applied(filter);
    seen = seen && test_and_promote(filter, element);
  }
  if (seen && !lets_pass(filter, element)) return Verdict::seen;
  if (unlikely(own.view == OwnView::late)) note_late(filter);
  if (changes == nullptr) changes = begin(filter);
  return test_and_reserve(filter, changes, element, own.hint, applied, in_sight);
}

void prefetch_local_keys(const FilterHandle* filter, const Element* elements, const bool* has_key,
                         int count) {
  const TransactionChanges* changes = changes_of(filter);
  Prefetches prefetches;
  for (int i = 0; i < count; ++i) {
    if (has_key != nullptr && !has_key[i]) continue;
    prefetch(filter->header, elements[i], prefetches);
    if (changes == nullptr || !changes->overflowed)
      prefetch_in_flight(in_flight_tag_of(filter, elements[i]), prefetches);
    if (changes != nullptr) prefetch_index(&changes->log, elements[i].hash, prefetches);
  }
  prefetches.start();
  if (changes == nullptr) return;
  for (int i = 0; i < count; ++i)
    if (has_key == nullptr || has_key[i])
      prefetch_change(&changes->log, guess_key(&changes->log, elements[i].hash), prefetches);
  prefetches.start();
}

// What is not restored yet need not be: nobody restores it while the relation is locked.
void reset_local_filter(FilterHandle* filter) {
  // The lock on the relation keeps other transactions away, also prepared ones; what is left of
  // such that have ended must not come after this.
  resolve_prepared(filter->relid);
  append_own_change(begin_change(filter), ChangeType::reset, Element{});
}

void merge_into_local_filter(FilterHandle* filter, const Header* value, int64 slice) {
  require_fit(filter, value, slice);
  add_value(filter, value, slice,
            slice == kAllSlices ? block_bytes(value->parameters)
                                : sizeof(Header) + value->parameters.slice_bytes);
}

Header* copy_local_filter(FilterHandle* filter) {
  wait_until_applied(filter);
  const Parameters& parameters = filter->header->parameters;
  auto* copy = static_cast<Header*>(MemoryContextAllocExtended(
      CurrentMemoryContext, block_bytes(parameters), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
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

// ---- many keys ----------------------------------------------------------------------------------

// Judges many keys at once, with the same answers and the same filter state as one by one. One pass
// looks into the transaction's own changes; one looks into the filter, slice by slice, taking each
// lock once; then the keys are answered and noted in their order. All memory is prefetched.

namespace {

constexpr int kTogether = 256;
static_assert(kTogether <= LockBatches::kMax);
constexpr int kFewest = 8;      // smaller batches do not pay
constexpr int kLookahead = 32;  // keys prefetched ahead

struct KeyBatch {
  FilterHandle* filter;
  Outcome of_repeats;
  bool learns, extends;         // repeats change the filter; they move the time of their key
  TransactionChanges* changes;  // nullptr: none yet
  uint64 applied;               // the slot's count before the filter was read
  int count;
  const Element* elements[kTogether];
  bool* seen[kTogether];  // where to write the answers
  int repeats;            // among them
  OwnKey own[kTogether];
  int untouched_count;
  uint16 untouched[kTogether];  // keys that the own changes do not have
  bool found[kTogether];        // by the filter
  bool is_newer[kTogether];     // of them, if repeats extend: this one has moved its time
};

// Calls use(i) for every key, and fetch(i) some keys ahead.
template <typename Fetch, typename Use>
void with_lookahead(int count, Fetch&& fetch, Use&& use) {
  Prefetches prefetches;
  const auto fetch_from = [&](int from) {
    for (int i = from; i < Min(from + kLookahead, count); ++i) fetch(i, prefetches);
    prefetches.start();
  };
  fetch_from(0);
  for (int i = 0; i < count; ++i) {
    if (i % kLookahead == 0) fetch_from(i + kLookahead);
    use(i);
  }
}

// A guess that `answer` verifies: reading the index is cheap, while the change itself lies
// elsewhere in memory. Then collects keys that the own changes do not have; branchless, because the
// condition is unpredictable.
void look_into_own_changes(KeyBatch& batch) {
  if (batch.changes != nullptr) {
    const ChangeLog* log = &batch.changes->log;
    with_lookahead(
        batch.count,
        [&](int i, Prefetches& prefetches) {
          prefetch_index(log, batch.elements[i]->hash, prefetches);
        },
        [&](int i) {
          const Element& element = *batch.elements[i];
          batch.own[i] = view_at(batch.changes, element, guess_key(log, element.hash));
        });
  }
  for (int i = 0; unlikely(batch.filter->times.used) && i < batch.count; ++i)
    batch.own[i] = as_judged(batch.filter, batch.changes, *batch.elements[i], batch.own[i]);
  batch.untouched_count = 0;
  for (int i = 0; i < batch.count; ++i) {
    batch.untouched[batch.untouched_count] = static_cast<uint16>(i);
    batch.untouched_count += batch.own[i].view == OwnView::untouched;
    batch.found[i] = false;
  }
}

// A found key is promoted, as in judge_local_key.
void look_into_filter(KeyBatch& batch) {
  FilterHandle* filter = batch.filter;
  Header* header = filter->header;
  const bool learns = batch.learns;
  const auto untouched = static_cast<uint32>(batch.untouched_count);
  const auto key = [&](uint32 i) -> const Element& { return *batch.elements[batch.untouched[i]]; };
  if (header->parameters.k1 > 0) {
    for (uint32 i = 0; i < untouched; ++i)
      batch.found[batch.untouched[i]] = is_in_filter(filter, key(i));
    return;
  }
  const LockBatches order(untouched, header->parameters.slices,
                          [&](uint32 i) { return slice_of(header->parameters, key(i).hash); });
  LWLock* held = nullptr;
  with_lookahead(
      batch.untouched_count,
      [&](int i, Prefetches& prefetches) {
        prefetch(header, key(order.at(static_cast<uint32>(i))), prefetches);
      },
      [&](int i) {
        const auto number = static_cast<uint32>(i);
        const uint32 at = order.at(number);
        if (order.begins(number)) {
          if (held != nullptr) LWLockRelease(held);
          held = slice_lock(filter->slot, order.number(number));
          LWLockAcquire(held, learns ? LW_EXCLUSIVE : LW_SHARED);
        }
        unsigned position = kNoRank;
        if (batch.extends) batch.is_newer[batch.untouched[at]] = renews(header, key(at));
        batch.found[batch.untouched[at]] =
            learns ? promote(header, key(at), position) : test(header, key(at));
        if (position != kNoRank) count_found(filter, position);
      });
  if (held != nullptr) LWLockRelease(held);
  for (uint32 i = 0; learns && i < untouched; ++i)
    if (batch.found[batch.untouched[i]]) promote_in_copy(filter->slot, key(i));
}

void note_renewals(const KeyBatch& batch) {
  for (int i = 0; i < batch.untouched_count; ++i)
    if (const uint16 at = batch.untouched[i]; batch.found[at] && batch.is_newer[at])
      note_renewal(batch.filter, *batch.elements[at]);
}

bool answer_alone(FilterHandle* filter, const Element& element) {
  return judge_local_key(filter, element, Intent::insert) != Verdict::fresh;
}

// Was it late, or may earlier keys of this batch, added or promoted, have made it late?
bool may_be_late(const KeyBatch& batch, int i) {
  return unlikely(batch.filter->times.used) &&
         (batch.own[i].view == OwnView::late || batch.learns ||
          (batch.changes != nullptr && batch.elements[i]->time < batch.changes->latest));
}

bool answer(KeyBatch& batch, int i) {
  FilterHandle* filter = batch.filter;
  const Element& element = *batch.elements[i];
  // The filter has changed since it was read, perhaps while an earlier key waited.
  if (unlikely(pg_atomic_read_u64(&filter->slot->applied) != batch.applied))
    return answer_alone(filter, element);
  // Earlier keys of this batch may have been added.
  OwnKey own;
  if (batch.changes != nullptr)
    own = view_at(batch.changes, element,
                  confirm_key(&batch.changes->log, element.hash, batch.own[i].hint));
  if (may_be_late(batch, i)) own = as_judged(filter, batch.changes, element, own);
  if (own.view == OwnView::added) {
    if (batch.learns) note_repeat(batch.changes, element, own.hint);
    return true;
  }
  if (unlikely(own.view != batch.own[i].view)) return answer_alone(filter, element);
  if (batch.found[i] && !lets_pass(filter, element)) return true;
  if (unlikely(own.view == OwnView::late)) note_late(filter);
  if (batch.changes == nullptr) batch.changes = begin(filter);
  return test_and_reserve(filter, batch.changes, element, own.hint, batch.applied,
                          batch.own[i].view == OwnView::untouched) != Verdict::fresh;
}

void answer_all(KeyBatch& batch) {
  const FilterHandle* filter = batch.filter;
  const bool registers = batch.changes == nullptr || !batch.changes->overflowed;
  const ChangeLog* log = batch.changes == nullptr ? nullptr : &batch.changes->log;
  with_lookahead(
      batch.count,
      [&](int i, Prefetches& prefetches) {
        if (log != nullptr) prefetch_change(log, batch.own[i].hint, prefetches);
        if (registers && !batch.found[i] && batch.own[i].view != OwnView::added)
          prefetch_in_flight(in_flight_tag_of(filter, *batch.elements[i]), prefetches);
      },
      [&](int i) {
        *batch.seen[i] = answer(batch, i);
        batch.repeats += *batch.seen[i];
      });
}

void judge_batch(KeyBatch& batch) {
  FilterSlot* slot = batch.filter->slot;
  for (int i = 0; unlikely(!is_whole(slot)) && i < batch.count; ++i)
    await_key(batch.filter, *batch.elements[i]);
  hand_over_wanted_filters();
  batch.changes = changes_of(batch.filter);
  batch.applied = pg_atomic_read_u64(&slot->applied);
  batch.learns = learns_from_repeats(batch.filter->header->parameters);
  batch.extends = window_of(batch.filter->header->parameters).extends;
  const Arriving arriving(slot);
  if (batch.count < kFewest || arriving.keys || arriving.erasures) {
    for (int i = 0; i < batch.count; ++i)
      batch.repeats += *batch.seen[i] = answer_alone(batch.filter, *batch.elements[i]);
    return;
  }
  look_into_own_changes(batch);
  look_into_filter(batch);
  stop_at(FaultPoint::judge);
  answer_all(batch);
  if (batch.extends) note_renewals(batch);
}

}  // namespace

void judge_local_keys(FilterHandle* filter, const Element* elements, const bool* has_key, int count,
                      Outcome of_repeats, bool* seen) {
  KeyBatch batch;
  batch.filter = filter;
  batch.of_repeats = of_repeats;
  int keys = 0;
  for (int i = 0; i < count;) {
    batch.count = batch.repeats = 0;
    for (; i < count && batch.count < kTogether; ++i) {
      seen[i] = false;
      if (!has_key[i]) continue;
      batch.elements[batch.count] = &elements[i];
      batch.seen[batch.count++] = &seen[i];
    }
    judge_batch(batch);
    keys += batch.count;
    count_answers(filter, batch.count, batch.repeats, of_repeats);
  }
  count_rows(filter, RowCount::null_keys, count - keys);
}

}  // namespace streamfilter::pg
