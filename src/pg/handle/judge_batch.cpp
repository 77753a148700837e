// Judges many keys at once, with the same answers and the same filter state as one by one. One pass
// looks into the transaction's own changes; one looks into the filter, slice by slice, taking each
// lock once; then the keys are answered and noted in their order. All memory is prefetched.
#include "pg/server/postgres.hpp"

#include "pg/handle/judge_key.hpp"
#include "pg/handle/key_reservation.hpp"
#include "pg/handle/overfull.hpp"
#include "pg/server/fault_points.hpp"
#include "pg/server/lock_batches.hpp"
#include "pg/shmem/state_copy.hpp"

namespace streamfilter::pg {
namespace {

constexpr int kTogether = 256;
static_assert(kTogether <= LockBatches::kMax);
constexpr int kFewest = 8;      // smaller batches do not pay
constexpr int kLookahead = 32;  // keys prefetched ahead

struct KeyBatch {
  FilterHandle* filter;
  Outcome of_repeats;
  TransactionChanges* changes;  // nullptr: none yet
  uint64 applied;               // the slot's count before the filter was read
  int count;
  const Element* elements[kTogether];
  bool* seen[kTogether];  // where to write the answers
  OwnKey own[kTogether];
  int untouched_count;
  uint16 untouched[kTogether];  // keys that the own changes do not have
  bool found[kTogether];        // by the filter
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
// elsewhere in memory.
void look_into_own_changes(KeyBatch& batch) {
  if (batch.changes == nullptr) return;
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

// Collects keys that the own changes do not have. Branchless, because the condition is
// unpredictable.
void find_untouched(KeyBatch& batch) {
  batch.untouched_count = 0;
  for (int i = 0; i < batch.count; ++i) {
    batch.untouched[batch.untouched_count] = static_cast<uint16>(i);
    batch.untouched_count += batch.own[i].view == OwnView::untouched;
    batch.found[i] = false;
  }
}

// A found key is promoted, as in test_and_insert_local_key.
void look_into_slices(KeyBatch& batch) {
  FilterHandle* filter = batch.filter;
  Header* header = filter->header;
  const bool learns = ops_of(header).learns_from_repeats;
  const auto key = [&](uint32 i) -> const Element& { return *batch.elements[batch.untouched[i]]; };
  const LockBatches order(static_cast<uint32>(batch.untouched_count), header->parameters.slices,
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
        batch.found[batch.untouched[at]] =
            learns ? promote(header, key(at), position) : test(header, key(at));
        if (position != kNoRank) count_found(filter, position);
      });
  if (held != nullptr) LWLockRelease(held);
  if (!learns || likely(copy_of(filter->slot) == nullptr)) return;
  for (uint32 i = 0; i < static_cast<uint32>(batch.untouched_count); ++i)
    if (batch.found[batch.untouched[i]]) promote_in_copy(filter->slot, key(i));
}

void look_into_filter(KeyBatch& batch) {
  find_untouched(batch);
  if (batch.filter->header->parameters.k1 == 0) return look_into_slices(batch);
  for (int i = 0; i < batch.untouched_count; ++i) {
    const int at = batch.untouched[i];
    batch.found[at] = is_in_filter(batch.filter, *batch.elements[at]);
  }
}

void note_repeat(KeyBatch& batch, const Element& element, const IndexHint& hint) {
  if (!ops_of(batch.filter->header).learns_from_repeats) return;
  reserve_change(batch.changes);
  append_change(batch.changes, ChangeType::repeat, as_accepted(batch.changes, element, hint), hint);
}

// Own changes as of now: earlier keys of this batch may have been added.
OwnKey own_by_now(const KeyBatch& batch, int i) {
  if (batch.changes == nullptr) return OwnKey{};
  const Element& element = *batch.elements[i];
  return view_at(batch.changes, element,
                 confirm_key(&batch.changes->log, element.hash, batch.own[i].hint));
}

bool answer(KeyBatch& batch, int i) {
  FilterHandle* filter = batch.filter;
  const Element& element = *batch.elements[i];
  // The filter has changed since it was read, perhaps while an earlier key waited.
  if (unlikely(pg_atomic_read_u64(&filter->slot->applied) != batch.applied))
    return test_and_insert_local_key(filter, element);
  const OwnKey own = own_by_now(batch, i);
  if (own.view == OwnView::added) {
    note_repeat(batch, element, own.hint);
    return true;
  }
  if (unlikely(own.view != batch.own[i].view)) return test_and_insert_local_key(filter, element);
  if (batch.found[i] && !lets_pass(filter, element)) return true;
  if (batch.changes == nullptr) batch.changes = begin(filter);
  return test_and_reserve(filter, batch.changes, element, own.hint, batch.applied,
                          batch.own[i].view == OwnView::untouched);
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
          prefetch_in_flight(in_flight_tag(filter, *batch.elements[i]), prefetches);
      },
      [&](int i) {
        *batch.seen[i] = answer(batch, i);
        count_answer(batch.filter, *batch.seen[i], batch.of_repeats);
      });
}

void answer_one_by_one(const KeyBatch& batch) {
  for (int i = 0; i < batch.count; ++i) {
    *batch.seen[i] = test_and_insert_local_key(batch.filter, *batch.elements[i]);
    count_answer(batch.filter, *batch.seen[i], batch.of_repeats);
  }
}

void judge(KeyBatch& batch) {
  FilterSlot* slot = batch.filter->slot;
  for (int i = 0; unlikely(!is_whole(slot)) && i < batch.count; ++i)
    await_key(batch.filter, *batch.elements[i]);
  hand_over_wanted_filters();
  batch.changes = changes_of(batch.filter);
  batch.applied = pg_atomic_read_u64(&slot->applied);
  const Arriving arriving(slot);
  if (batch.count < kFewest || arriving.keys || arriving.erasures) return answer_one_by_one(batch);
  look_into_own_changes(batch);
  look_into_filter(batch);
  stop_at(FaultPoint::judge);
  answer_all(batch);
}

}  // namespace

void test_and_insert_local_keys(FilterHandle* filter, const Element* elements, const bool* has_key,
                                int count, Outcome of_repeats, bool* seen) {
  KeyBatch batch;
  batch.filter = filter;
  batch.of_repeats = of_repeats;
  for (int i = 0; i < count;) {
    for (batch.count = 0; i < count && batch.count < kTogether; ++i) {
      seen[i] = false;
      if (!has_key[i]) continue;
      batch.elements[batch.count] = &elements[i];
      batch.seen[batch.count++] = &seen[i];
    }
    judge(batch);
  }
}

}  // namespace streamfilter::pg
