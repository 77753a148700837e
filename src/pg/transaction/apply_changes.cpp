#include "pg/server/postgres.hpp"

#include "pg/shmem/locked_work.hpp"
#include "pg/transaction/apply_changes.hpp"

namespace streamfilter::pg {
namespace {

constexpr uint32 kLookahead = 64;  // keys prefetched ahead
constexpr uint32 kLine = 64;       // bytes that a change is counted for

// Locks one slice at a time; nothing for a filter that nobody else sees. For an unfinished copy,
// says which changes of a slice not to apply.
class SliceLock {
 public:
  explicit SliceLock(const FilterSlot* slot, FilterSlot* copy = nullptr)
      : slot_(slot), copy_(copy) {}

  void acquire(uint32 slice) {
    if (slot_ == nullptr) return;
    held_ = slice_lock(slot_, slice);
    LWLockAcquire(held_, LW_EXCLUSIVE);
    if (unlikely(copy_ != nullptr)) gate_ = copy_gate(copy_, slice);
  }

  // Must the change not be applied to the locked slice? Then this has done what is needed.
  bool takes(ChangeType type, const Element& element) {
    if (likely(gate_ == CopyGate::apply)) return false;
    if (gate_ == CopyGate::note) note_change(copy_, type, element);
    return true;
  }

  void release() {
    if (held_ != nullptr) LWLockRelease(held_);
    held_ = nullptr;
  }

 private:
  const FilterSlot* slot_;
  FilterSlot* copy_;
  CopyGate gate_ = CopyGate::apply;
  LWLock* held_ = nullptr;
};

bool is_merge(const ChangeLog* log, uint32 position) {
  return change_at(log, position)->is(ChangeType::merge);
}

// Number of changes before the next one that merges a value.
uint32 up_to_merge(const ChangeLog* log, uint32 position, uint32 count) {
  for (uint32 i = 1; i < count; ++i)
    if (is_merge(log, position + i)) return i;
  return count;
}

// Others were taken back, or the filter has them already.
bool is_pending(ChangeType type) {
  return type != ChangeType::withdrawn && type != ChangeType::promote;
}

void apply_change(ChangeType type, const Element& element, Header* header) {
  count_work(Work::bytes, kLine);
  switch (type) {
    case ChangeType::erase: erase(header, element); break;
    case ChangeType::add: insert_new(header, element); break;
    default: insert(header, element);
  }
}

// Where keys lie in the order of last sight, only a key's last change matters; the others only
// count.
bool only_last_counts(const Parameters& parameters) {
  return ranks_of_bucket(parameters) > 0 && !uses_time(parameters);
}

// Changes that are applied together, slice by slice. Changes of a key keep their order, because a
// key has one slice. `kRoom` limits their number, because clearing takes time.
template <uint32 kRoom>
void apply_group(const ChangeLog* log, uint32 start, uint32 count, Header* header,
                 SliceLock* lock) {
  const bool skips = only_last_counts(header->parameters);
  Element elements[kRoom];
  ChangeType types[kRoom];
  bool is_skipped[kRoom];
  ChangeReader reader(log, start);
  const LockBatches batches(count, header->parameters.slices, [&](uint32 i) {
    const Change* change = reader.next();
    elements[i] = reader.element();
    types[i] = change->what();
    is_skipped[i] = skips && change->repeated;
    return slice_of(header->parameters, change->hash);
  });
  const auto fetch = [&](uint32 from) {
    Prefetches prefetches;
    for (uint32 i = from; i < Min(from + kLookahead, count); ++i)
      if (!is_skipped[batches.at(i)]) prefetch(header, elements[batches.at(i)], prefetches);
    prefetches.start();
  };
  fetch(0);
  for (uint32 i = 0; i < count; ++i) {
    if (i % kLookahead == 0) fetch(i + kLookahead);
    if (batches.begins(i)) {
      lock->release();
      lock->acquire(batches.number(i));
    }
    const uint32 at = batches.at(i);
    if (!is_pending(types[at]) || lock->takes(types[at], elements[at])) continue;
    if (is_skipped[at])
      count_insertion(header, batches.number(i), true);
    else
      apply_change(types[at], elements[at], header);
  }
  lock->release();
}

// Keys with several probes, of kinds that only add: one after the other, each slice by slice.
void apply_probes(const ChangeLog* log, uint32 start, uint32 count, Header* header,
                  FilterSlot* slot) {
  ChangeReader reader(log, start);
  for (uint32 i = 0; i < count; ++i) {
    if (!is_pending(reader.next()->what())) continue;
    const Element element = reader.element();
    slot == nullptr ? insert_new(header, element) : insert_new_in_slices(slot, header, element);
  }
}

void apply_one(const ChangeLog* log, uint32 position, Header* header, SliceLock* lock) {
  ChangeReader reader(log, position);
  const auto type = reader.next()->what();
  if (!is_pending(type)) return;
  const Element element = reader.element();
  lock->acquire(slice_of(header->parameters, element.hash));
  if (!lock->takes(type, element)) apply_change(type, element, header);
  lock->release();
}

// Most transactions bring few keys, or one. It is one of no other: then it is no repeat, either.
void apply_slice_by_slice(const ChangeLog* log, uint32 start, uint32 count, Header* header,
                          SliceLock* lock) {
  constexpr uint32 kFew = 16;
  if (log->count == 1)
    apply_one(log, start, header, lock);
  else if (count <= kFew)
    apply_group<kFew>(log, start, count, header, lock);
  else
    apply_group<LockBatches::kMax>(log, start, count, header, lock);
}

// A change that a copy cannot follow makes the copy useless.
void apply_to_copy(const ChangeLog* log, FilterSlot* slot, FilterSlot* copy) {
  if (log->last_reset != kNoChange || log->last_merge != kNoChange) {
    pg_atomic_write_u32(&slot->copy.spoiled, 1);
    return;
  }
  SliceLock lock(copy, copy);
  for (uint32 position = 0; position < log->count;) {
    const uint32 count = Min(LockBatches::kMax, log->count - position);
    apply_slice_by_slice(log, position, count, block_of(copy), &lock);
    position += count;
  }
}

}  // namespace

void apply_note(Header* header, const CopyNote& note) {
  unsigned rank;
  if (note.type == ChangeType::promote)
    promote(header, note.element, rank);
  else
    apply_change(note.type, note.element, header);
}

void apply_committed(const ChangeLog* log, Header* header, FilterSlot* slot) {
  const uint32 phase = enter_phase(&slot->copy.applying);
  if (FilterSlot* copy = copy_of(slot)) apply_to_copy(log, slot, copy);
  apply_changes(log, header, slot);
  leave_phase(&slot->copy.applying, phase);
  if (log->last_reset != kNoChange) note_emptied(slot);
}

void note_emptied(FilterSlot* slot) {
  pg_atomic_write_u64(&slot->restoring.missing, 0);
  pg_atomic_write_u64(&slot->ahead_of_clock, 0);
  slot->why_empty = WhyEmpty::truncated;
  pg_atomic_write_u64(&slot->stats.last_reset, static_cast<uint64>(GetCurrentTimestamp()));
}

void apply_changes(const ChangeLog* log, Header* header, FilterSlot* slot) {
  SliceLock lock(slot);
  const auto on_every_slice = [&](auto&& change) {
    for (uint32 i = 0; i < header->parameters.slices; ++i) {
      lock.acquire(i);
      change(i);
      lock.release();
    }
  };
  uint32 position = 0;
  if (log->last_reset != kNoChange) {
    if (slot != nullptr && renew_block(slot))
      header = block_of(slot);
    else
      on_every_slice([&](uint32 slice) {
        format_slice(header, slice);
        count_work(Work::bytes, header->parameters.slice_bytes);
      });
    position = log->last_reset + 1;
  }
  while (position < log->count) {
    if (is_merge(log, position)) {
      const MergedValue* value = merged_value(change_at(log, position++));
      if (value->slice == kAllSlices) {
        on_every_slice([&](uint32 slice) { merge_slice(header, value->header(), slice); });
      } else {
        const auto slice = static_cast<uint32>(value->slice);
        lock.acquire(slice);
        merge_slice(header, slice_at(value->header(), 0), slice);
        lock.release();
      }
      continue;
    }
    uint32 count = Min(LockBatches::kMax, log->count - position);
    if (log->last_merge != kNoChange && log->last_merge > position)
      count = up_to_merge(log, position, count);
    if (header->parameters.k1 > 0)
      apply_probes(log, position, count, header, slot);
    else
      apply_slice_by_slice(log, position, count, header, &lock);
    position += count;
  }
}

bool test_in_slices(const FilterSlot* slot, const Header* header, const Element& element) {
  for (unsigned i = 0; i < probes(header->parameters); ++i) {
    const KeyProbe probe = probe_of(header->parameters, element.hash, i);
    const LockHeld held(slice_lock(slot, probe.slice), LW_SHARED);
    if (!test_probe(header, element, probe)) return false;
  }
  return true;
}

void insert_new_in_slices(const FilterSlot* slot, Header* header, const Element& element) {
  const Parameters& parameters = header->parameters;
  const bool anyway = inserts_unconditionally(parameters), by_probe = anyway || parameters.k1 > 0;
  const bool seen = by_probe && !anyway && test_in_slices(slot, header, element);
  for (unsigned i = 0; i < probes(parameters); ++i) {
    const KeyProbe probe = probe_of(parameters, element.hash, i);
    const LockHeld held(slice_lock(slot, probe.slice), LW_EXCLUSIVE);
    if (!by_probe)
      insert(header, element);
    else if (!seen)
      insert_probe(header, element, probe);
    if (by_probe && i == 0) count_insertion(header, probe.slice, seen);
    if (seen) break;
  }
}

}  // namespace streamfilter::pg
