#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

Pending* pending_filters = nullptr;

bool is_key(const LogEntry* entry) { return entry->change == static_cast<uint32>(Change::add); }

Mark* mark_now(Pending* pending) {
  const SubTransactionId current = GetCurrentSubTransactionId();
  if (pending->marks != nullptr && pending->marks->subtransaction == current) return pending->marks;
  auto* mark = static_cast<Mark*>(MemoryContextAlloc(TopTransactionContext, sizeof(Mark)));
  *mark = {pending->marks,     current,  GetCurrentTransactionNestLevel(),
           pending->log.count, kNoEntry, pending->latest};
  pending->marks = mark;
  return mark;
}

void note_time(Pending* pending, const Element& element) {
  if (element.time != PG_INT64_MAX) pending->latest = Max(pending->latest, element.time);
}

void pop_mark(Pending* pending) {
  Mark* mark = pending->marks;
  pending->marks = mark->below;
  pfree(mark);
}

// Takes the keys of all changes from `keep` on out of the table of keys in flight. Returns how many
// were there.
uint32 withdraw_from(Pending* pending, uint32 keep) {
  InFlightKey keys[kMostRemoved];
  uint32 count = 0, removed = 0;
  const uint32 announced = pending->announced;
  for (uint32 i = keep; removed + count < announced && i < pending->log.count; ++i) {
    LogEntry* entry = entry_at(&pending->log, i);
    if (!entry->announced) continue;
    entry->announced = 0;
    keys[count++] = {in_flight_tag(pending->generation, entry->hash),
                     pending->owners[entry->owner]};
    if (count < kMostRemoved) continue;
    remove_in_flight(keys, count);
    removed += count;
    count = 0;
  }
  remove_in_flight(keys, count);
  pending->announced -= removed + count;
  return removed + count;
}

void publish(Pending* pending) {
  const int64 more = static_cast<int64>(pending->unannounced) - pending->published;
  if (more != 0 && is_alive(pending)) pg_atomic_fetch_add_u64(&pending->slot->unannounced, more);
  pending->published = pending->unannounced;
}

// Takes the keys of all changes from `keep` on away.
void retract(Pending* pending, uint32 keep) {
  uint32 keys = 0;
  for (uint32 i = keep; i < pending->log.count; ++i) keys += is_key(entry_at(&pending->log, i));
  pending->unannounced -= keys - withdraw_from(pending, keep);
  publish(pending);
  if (is_alive(pending)) pg_atomic_fetch_add_u64(&pending->slot->rolled_back, keys);
}

void release_slot(Pending* pending) {
  if (!is_alive(pending)) return;
  if (pending->published > 0)
    pg_atomic_fetch_sub_u64(&pending->slot->unannounced, pending->published);
  uint64 self = U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
  if (pending->overflowed && self != 0)
    pg_atomic_compare_exchange_u64(&pending->slot->claimed_by, &self, 0);
}

void apply(Pending* pending) {
  play_changes(&pending->log, pending->header, pending->slot);
  if (pending->log.last_reset != kNoEntry) pending->slot->last_reset = GetCurrentTimestamp();
}

void abort_subtransaction(Pending* pending, int level) {
  uint32 keep = pending->log.count;
  while (pending->marks != nullptr && pending->marks->level >= level) {
    keep = pending->marks->start;
    pending->latest = pending->marks->latest;
    // Those of the entries that stay are older.
    if (pending->marks->owner != kNoEntry) pending->owner_count = pending->marks->owner;
    pop_mark(pending);
  }
  retract(pending, keep);
  while (pending->log.count > keep) {
    const LogEntry* last = entry_at(&pending->log, pending->log.count - 1);
    if (last->change == static_cast<uint32>(Change::merge)) pfree(merged_value(last));
    undo_change(&pending->log);
  }
}

// What a subtransaction has changed is its parent's now.
void commit_subtransaction(Pending* pending, int level, SubTransactionId parent) {
  if (pending->marks == nullptr || pending->marks->level < level) return;
  const Mark* below = pending->marks->below;
  if (below != nullptr && below->level == level - 1) {
    pop_mark(pending);
    return;
  }
  pending->marks->level = level - 1;
  pending->marks->subtransaction = parent;
  pending->marks->owner = kNoEntry;
}

bool holds(const MergedValue* value, const Element& element) {
  if (value->slice == kAllSlices) return test(value->header(), element);
  const Parameters& parameters = value->header()->parameters;
  for (unsigned i = 0; i < places(parameters); ++i) {
    const Place place = place_of(parameters, element.hash, i);
    if (place.slice != value->slice || !test_place(value->header(), element, {0, place.hash}))
      return false;
  }
  return true;
}

OwnView view_of(const Pending* pending, const Element& element, uint32 last) {
  const KeyLog* log = &pending->log;
  const OwnView rest = log->last_reset == kNoEntry ? OwnView::untouched : OwnView::forgotten;
  if (last == kNoEntry || (rest == OwnView::forgotten && last < log->last_reset)) return rest;
  if (entry_at(log, last)->change == static_cast<uint32>(Change::erase)) return OwnView::forgotten;
  if (const FilterOps& ops = ops_of(pending->header); ops.expired != nullptr) {
    Element present = element;
    present.time = Max(present.time, pending->latest);
    if (ops.expired(pending->header->parameters, element_at(log, last), present,
                    log->count - last - 1))
      return rest;
  }
  return OwnView::added;
}

// Was the key in one of the values that the transaction has merged into the filter? `last` is its
// own last change.
bool in_merged_value(const Pending* pending, const Element& element, uint32 last) {
  const KeyLog* log = &pending->log;
  for (uint32 i = log->last_merge; i != kNoEntry; i = entry_at(log, i)->previous) {
    // What was forgotten later is not in it any more.
    if ((log->last_reset != kNoEntry && i < log->last_reset) || (last != kNoEntry && i < last))
      return false;
    if (holds(merged_value(entry_at(log, i)), element)) return true;
  }
  return false;
}

}  // namespace

Pending* find_pending(const FilterSlot* slot, uint64 generation) {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    if (pending->slot == slot && pending->generation == generation) return pending;
  return nullptr;
}

Pending* begin_pending(FilterSlot* slot, Header* header, bool logged) {
  if (Pending* pending = find_pending(slot, slot->generation)) return pending;
  const Parameters& parameters = header->parameters;
  auto* pending =
      static_cast<Pending*>(MemoryContextAllocZero(TopTransactionContext, sizeof(Pending)));
  pending->slot = slot;
  pending->generation = slot->generation;
  pending->header = header;
  pending->logged = logged;
  pending->latest = PG_INT64_MIN;
  init_log(&pending->log, TopTransactionContext,
           uses_time(parameters) || uses_importance(parameters));
  pending->owner_places = 4;
  pending->owners = static_cast<Owner*>(
      MemoryContextAlloc(TopTransactionContext, sizeof(Owner) * pending->owner_places));
  pending->next = pending_filters;
  pending_filters = pending;
  return pending;
}

OwnKey find_own(const Pending* pending, const Element& element) {
  OwnKey own;
  own.spot = find_key(&pending->log, element.hash);
  own.view = view_of(pending, element, own.spot.last);
  if (unlikely(pending->log.last_merge != kNoEntry) && own.view != OwnView::added &&
      in_merged_value(pending, element, own.spot.last))
    own.view = OwnView::added;
  return own;
}

Element as_accepted(const Pending* pending, const Element& element, const KeySpot& spot) {
  Element result = element;
  if (uses_time(pending->header->parameters) && spot.last != kNoEntry)
    result.time = element_at(&pending->log, spot.last).time;
  return result;
}

void reserve_pending(Pending* pending) {
  mark_now(pending);
  reserve_change(&pending->log);
}

void append_pending(Pending* pending, Change change, const Element& element, const KeySpot& spot) {
  append_change(&pending->log, change, element, spot);
  note_time(pending, element);
  if (change != Change::add) return;
  ++pending->unannounced;
  // Of many keys not each one: publish_counts.
  if (pending->unannounced - pending->published > pending->published / 64) publish(pending);
}

void append_announced(Pending* pending, const Element& element, const KeySpot& spot) {
  LogEntry* entry = append_change(&pending->log, Change::add, element, spot);
  entry->announced = 1;
  entry->owner = pending->marks->owner;
  note_time(pending, element);
  ++pending->announced;
}

Owner owner_of_new_key(Pending* pending) {
  Mark* mark = mark_now(pending);
  if (mark->owner == kNoEntry) {
    const Owner owner = make_owner(pending->slot, GetCurrentFullTransactionId());
    if (pending->owner_count == pending->owner_places) {
      pending->owners = static_cast<Owner*>(repalloc_huge(
          pending->owners, sizeof(Owner) * 2 * static_cast<Size>(pending->owner_places)));
      pending->owner_places *= 2;
    }
    pending->owners[pending->owner_count] = owner;
    mark->owner = pending->owner_count++;
  }
  return pending->owners[mark->owner];
}

void withdraw_announcements(Pending* pending) {
  const uint32 announced = withdraw_from(pending, 0);
  pending->unannounced += announced;
  publish(pending);
}

void publish_counts() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    publish(pending);
}

Pending* first_pending() { return pending_filters; }

// All filters have their keys before any of them says so, and before any other transaction is told
// that this one has ended: one key may be in several nodes of a hierarchy.
void apply_transaction_changes() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    if (is_alive(pending)) apply(pending);
}

void publish_transaction_changes() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next) {
    if (is_alive(pending)) pg_atomic_fetch_add_u64(&pending->slot->applied, 1);
    withdraw_announcements(pending);
  }
}

void retract_transaction_changes() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    retract(pending, 0);  // nobody looks at the log any more
}

void forget_transaction_changes() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    release_slot(pending);
  pending_filters = nullptr;
}

void keep_changes_of_subtransaction(SubTransactionId parent) {
  const int level = GetCurrentTransactionNestLevel();
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    commit_subtransaction(pending, level, parent);
}

void retract_changes_of_subtransaction() {
  const int level = GetCurrentTransactionNestLevel();
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    abort_subtransaction(pending, level);
}

}  // namespace streamfilter::pg
