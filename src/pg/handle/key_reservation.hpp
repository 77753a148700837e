// How a new key becomes this transaction's: under the lock of its partition of the table of keys in
// flight. What unfinished transactions have added is found there; the filter is looked into once
// more, since one of them may have committed in between; a new key enters the table under that same
// lock, so of two transactions that add a key at once, one finds the other.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/handle/filter_handle.hpp"
#include "pg/transaction/own_view.hpp"

namespace streamfilter::pg {

// Does the filter itself have the key?
bool is_in_filter(const FilterHandle* filter, const Element& element);

// Waits until all transactions that have committed have brought their changes in.
void wait_until_applied(const FilterHandle* filter);

// Lets others add keys to the filters that this transaction has for itself: called before it waits
// for one that may come to need any of them, or runs another query, which may. Raises what waiting
// can.
void hand_over_filters();

// The same of those that others wait for: called every now and then, for there may be no new key
// for long.
void hand_over_wanted_filters();

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

// What the transaction has changed in the filter, begun if there is nothing.
TransactionChanges* begin(const FilterHandle* filter);

// Adds a key that is new as far as this transaction's own changes and a first look into the filter
// tell; `applied` is the slot's count from before that look, and `look_again`: it was one. False:
// it was seen after all. Of a key that an unfinished transaction has added, option conflict
// decides; with `at_once` the answer is false, whatever that says. Raises 53200, 54000 as
// reserve_change does, and what waiting for a lock can raise: 40P01, 55P03, 57014.
bool reserve(FilterHandle* filter, TransactionChanges* changes, const Element& element,
             const IndexHint& hint, uint64 applied, bool look_again, bool at_once = false);

// The key that has waited last for another transaction, where the caller of `reserve` has it: for
// errors of many keys that are given at once. It may be gone.
extern const Element* waiting_key;

}  // namespace streamfilter::pg
