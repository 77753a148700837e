// The order at commit: the transaction is visibly committed, its locks are still held. Its keys go
// into the filter first, then out of the table of keys in flight; whoever finds a key in neither
// place came before the transaction. The callbacks allocate nothing and raise nothing.
#include "pg/server/postgres.hpp"

extern "C" {
#include "utils/timestamp.h"
}

#include "core/filter/filter.hpp"
#include "pg/server/settings.hpp"
#include "pg/storage/log_records.hpp"
#include "pg/storage/persistence.hpp"
#include "pg/transaction/apply_changes.hpp"
#include "pg/transaction/prepared_transactions.hpp"
#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {
namespace {

Pending* pending_filters = nullptr;
bool preparing = false;  // the keys may be among those of prepared transactions already

bool is_key(const LogEntry* entry) { return entry->change == static_cast<uint32>(Change::add); }

// Is the state that was changed still in its place?
bool is_alive(const Pending* pending) { return pending->slot->generation == pending->generation; }

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
  if (pending->committing) end_commit(pending->slot, pending->epoch);
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

// What is saved now that the transaction has committed.
void note_saved(Pending* pending) {
  SavedState* saved = &pending->slot->saved;
  saved->logged = pending->logged;
  if (pending->writes_header) pg_atomic_write_u32(&saved->has_header, 1);
  if (pending->drops_saved) pg_atomic_write_u32(&saved->has_header, 0);
  if (pending->saved_at == 0) return;
  saved->last_saved = pending->saved_at;
  pg_atomic_fetch_sub_u64(&saved->log_bytes,
                          Min(pending->freed_bytes, pg_atomic_read_u64(&saved->log_bytes)));
}

bool has_header(const Pending* pending) {
  return pg_atomic_read_u32(&pending->slot->saved.has_header) != 0;
}

// Does this transaction have to delete what is saved, or write an image? The log does not have
// merged values, nor what was added while the filter was unlogged.
bool replaces_saved(const Pending* pending) {
  if (!pending->logged) return has_header(pending);
  return pending->log.last_merge != kNoEntry ||
         (!has_header(pending) && pg_atomic_read_u64(&pending->slot->applied) > 0);
}

void replace_saved(Pending* pending) {
  const Oid relation = pending->slot->relation;
  if (!is_filter(relation)) return;  // this transaction has dropped it
  pending->replaced = true;
  if (!pending->logged) {
    delete_saved_state(relation);
    pending->drops_saved = true;
    return;
  }
  NamedFilter* filter = named_filter(relation);
  use_filter(filter, Use::probe);
  if (filter->slot != pending->slot) return;
  save_filter(filter, true);
  pending->writes_header = true;
}

void log_changes(Pending* pending) {
  pending->epoch = begin_commit(pending->slot);
  pending->committing = true;
  pending->writes_header = true;
  write_journal(pending);
  save_in_background_if_due(pending->slot, pending->journal_bytes);
}

bool has_changes(const Pending* pending) { return is_alive(pending) && pending->log.count > 0; }

// Saves the changes with the transaction. Images come first: once begin_commit was called, this
// transaction must not wait for one, since whoever takes one may be waiting for it.
void before_commit() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    if (has_changes(pending) && replaces_saved(pending)) replace_saved(pending);
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
    if (has_changes(pending) && pending->logged && !pending->replaced) log_changes(pending);
}

// All filters have their keys before any of them says so, and before any other transaction is told
// that this one has ended: one key may be in several nodes of a tree.
void commit() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next) {
    if (!is_alive(pending)) continue;
    note_saved(pending);
    apply(pending);
  }
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next) {
    if (is_alive(pending)) pg_atomic_fetch_add_u64(&pending->slot->applied, 1);
    withdraw_announcements(pending);
    release_slot(pending);
  }
  pending_filters = nullptr;
}

void abort() {
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next) {
    retract(pending, 0);  // nobody looks at the log any more
    release_slot(pending);
  }
  pending_filters = nullptr;
}

void before_prepare() {
  bool overflowed = false;
  for (const Pending* pending = pending_filters; pending != nullptr; pending = pending->next) {
    for (uint32 i = 0; i < pending->log.count; ++i) {
      const LogEntry* entry = entry_at(&pending->log, i);
      if (!is_key(entry) && entry->change != static_cast<uint32>(Change::repeat))
        ereport(
            ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
            errmsg("cannot PREPARE a transaction that has truncated a filter, deleted keys from "
                   "it or merged a value into it"));
    }
    overflowed |= pending->overflowed;
  }
  before_commit();
  preparing = !overflowed && add_prepared(pending_filters, GetTopFullTransactionIdIfAny());
  if (!preparing)
    ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
            errmsg("cannot PREPARE a transaction that has added so many keys to filters"),
            errdetail("Keys of prepared transactions need a place among "
                      "streamfilter.max_in_flight, now %d.",
                      max_in_flight),
            errhint("Commit in smaller parts, or raise streamfilter.max_in_flight and restart "
                    "the server."));
}

void at_transaction_end(XactEvent event, void*) {
  if (pending_filters == nullptr) return;
  switch (event) {
    case XACT_EVENT_PRE_COMMIT: before_commit(); break;
    case XACT_EVENT_COMMIT: commit(); break;
    case XACT_EVENT_ABORT:
      if (preparing) remove_prepared(GetTopFullTransactionIdIfAny());
      abort();
      break;
    case XACT_EVENT_PRE_PREPARE: before_prepare(); break;
    // From now on the keys belong to whoever meets them.
    case XACT_EVENT_PREPARE:
      // So does what is saved: whether it counts is not known yet.
      for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next)
        release_slot(pending);
      pending_filters = nullptr;
      break;
    default: return;
  }
  preparing = event == XACT_EVENT_PRE_PREPARE;
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

void at_subtransaction_end(SubXactEvent event, SubTransactionId, SubTransactionId parent, void*) {
  const int level = GetCurrentTransactionNestLevel();
  for (Pending* pending = pending_filters; pending != nullptr; pending = pending->next) {
    if (event == SUBXACT_EVENT_ABORT_SUB) abort_subtransaction(pending, level);
    if (event == SUBXACT_EVENT_COMMIT_SUB) commit_subtransaction(pending, level, parent);
  }
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

void init_pending() {
  RegisterXactCallback(at_transaction_end, nullptr);
  RegisterSubXactCallback(at_subtransaction_end, nullptr);
}

}  // namespace streamfilter::pg
