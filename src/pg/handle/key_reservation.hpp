// Reserves a new key for this transaction, under the lock of the key's partition of the table of
// keys in flight. The table has the keys of unfinished transactions. The filter is read once more,
// since one of them may have committed meanwhile. A new key enters the table under the same lock,
// so of two transactions that add a key at once, one finds the other.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Does the filter itself have the key?
bool is_in_filter(const FilterHandle* filter, const Element& element);

// Waits until all committed transactions have brought in their changes.
void wait_until_applied(const FilterHandle* filter);

// Replaces this transaction's locks on whole filters by entries per key, so that others can add
// keys. Called before it waits for another transaction, which may need any of these filters, or
// runs another query, which may wait. Raises what waiting can.
void hand_over_filters();

// The same, only for filters that others wait for. Called now and then, since the next new key may
// be a long time off.
void hand_over_wanted_filters();

// Has it such locks? May be true once they are gone.
bool has_exclusive_filters();

// Are there changes that are visible to others but not yet in the filter, or transactions that
// forget keys? Read before the filter is.
struct Arriving {
  explicit Arriving(const FilterSlot* slot)
      : keys(pg_atomic_read_u32(&slot->unfinished.arriving_keys) != 0),
        erasures(pg_atomic_read_u32(&slot->unfinished.erasing) != 0) {
    pg_read_barrier();
  }
  bool may_change(bool seen) const { return seen ? erasures : keys; }

  bool keys, erasures;
};

// This transaction's changes to the filter, begun if there are none.
TransactionChanges* begin(const FilterHandle* filter);

// Adds a key that is new to this transaction's own changes and to a first look into the filter;
// `applied` is the slot's count from before that look, `look_again` says that there was one.
// `seen`: the filter has it after all. For a key of an unfinished transaction, option conflict
// decides; with `at_once` it is taken. Raises 53200, 54000 as reserve_change does, and what waiting
// for a lock raises: 40P01, 55P03, 57014.
Verdict test_and_reserve(FilterHandle* filter, TransactionChanges* changes, const Element& element,
                         const IndexHint& hint, uint64 applied, bool look_again,
                         bool at_once = false);

// Notes that this transaction forgets a key, for others who insert it to wait for its end. Raises
// 53200, 54000, and what waiting for a lock raises.
void erase_reserved(FilterHandle* filter, TransactionChanges* changes, const Element& element);

// The filter has the key. With conflict 'wait', waits for other unfinished transactions that forget
// it; with any, until the changes of ended ones are in the filter: look again. Raises what waiting
// for a lock raises.
void await_erasures(FilterHandle* filter, const Element& element);

// The key that last waited for another transaction, in the caller's memory, for errors about one of
// many keys. It may be gone.
extern const Element* waiting_key;

// A filter that holds more keys than its false-positive rate allows. Unless option overfull says
// otherwise, repeats pass until the filter is larger or empty, or its window has moved on.

// Should this repeat pass, which the filter itself has found? Ask only for repeats. Cannot raise;
// report_overfull warns afterwards, where no lock is held.
bool passes_overfull(FilterHandle* filter, const Element& element);
inline bool passes_repeat(FilterHandle* filter, const Element& element) {
  return !filter->overfull.limit.is_none() &&
         unlikely(load_of(filter->header, element.hash) > filter->overfull.limit.load) &&
         passes_overfull(filter, element);
}

// Gives a WARNING once per session and filter, and a line in the log once per minute and filter.
void tell_overfull(FilterHandle* filter);
inline void report_overfull(FilterHandle* filter) {
  if (unlikely(filter->overfull.met)) tell_overfull(filter);
}

// Does both, where no lock is held.
inline bool lets_pass(FilterHandle* filter, const Element& element) {
  const bool passes = passes_repeat(filter, element);
  report_overfull(filter);
  return passes;
}

}  // namespace streamfilter::pg
