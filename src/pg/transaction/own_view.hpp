// What the transaction's own changes say about a key, before others see them.
#pragma once

#include "pg/transaction/transaction_changes.hpp"

namespace streamfilter::pg {

// A key that has left the window since is untouched.
enum class OwnView : uint8 { untouched, added, forgotten };
struct OwnKey {
  OwnView view = OwnView::untouched;
  IndexHint hint;  // of its changes; valid until the next change
};
inline OwnView view_of_added(const IndexHint& hint) {
  return hint.last == kNoChange ? OwnView::untouched : OwnView::added;
}
OwnView view_of_changed(const TransactionChanges* changes, const Element& element, uint32 last);
inline OwnKey view_at(const TransactionChanges* changes, const Element& element,
                      const IndexHint& hint) {
  return {likely(changes->only_adds) ? view_of_added(hint)
                                     : view_of_changed(changes, element, hint.last),
          hint};
}
// `changes` may be nullptr: there are none.
inline OwnKey find_own(const TransactionChanges* changes, const Element& element) {
  if (changes == nullptr) return {};
  return view_at(changes, element, find_key(&changes->log, element.hash));
}

// The element with the time of the row that this transaction accepted, if it did: a repeat does not
// prolong a window.
Element as_accepted(const TransactionChanges* changes, const Element& element,
                    const IndexHint& hint);

}  // namespace streamfilter::pg
