#include "pg/server/postgres.hpp"

#include "core/filter/filter.hpp"
#include "pg/transaction/own_view.hpp"

namespace streamfilter::pg {
namespace {

bool holds(const MergedValue* value, const Element& element) {
  if (value->slice == kAllSlices) return test(value->header(), element);
  const Parameters& parameters = value->header()->parameters;
  for (unsigned i = 0; i < probes(parameters); ++i) {
    const KeyProbe probe = probe_of(parameters, element.hash, i);
    if (probe.slice != value->slice || !test_probe(value->header(), element, {0, probe.hash}))
      return false;
  }
  return true;
}

OwnView view_of(const TransactionChanges* changes, const Element& element, uint32 last) {
  const ChangeLog* log = &changes->log;
  const OwnView rest = log->last_reset == kNoChange ? OwnView::untouched : OwnView::forgotten;
  if (last == kNoChange || (rest == OwnView::forgotten && last < log->last_reset)) return rest;
  if (change_at(log, last)->is(ChangeType::erase)) return OwnView::forgotten;
  if (const FilterOps& ops = ops_of(changes->header); ops.expired != nullptr) {
    Element present = element;
    present.time = Max(present.time, changes->latest);
    if (ops.expired(changes->header->parameters, element_at(log, last), present,
                    log->count - last - 1))
      return rest;
  }
  return OwnView::added;
}

// Was the key in one of the values that the transaction has merged? `last` is the key's own last
// change.
bool in_merged_value(const TransactionChanges* changes, const Element& element, uint32 last) {
  const ChangeLog* log = &changes->log;
  for (uint32 i = log->last_merge; i != kNoChange; i = change_at(log, i)->previous) {
    // A later reset has removed the value's keys.
    if ((log->last_reset != kNoChange && i < log->last_reset) || (last != kNoChange && i < last))
      return false;
    if (holds(merged_value(change_at(log, i)), element)) return true;
  }
  return false;
}

}  // namespace

OwnView view_of_changed(const TransactionChanges* changes, const Element& element, uint32 last) {
  const OwnView view = view_of(changes, element, last);
  if (likely(changes->log.last_merge == kNoChange) || view == OwnView::added) return view;
  return in_merged_value(changes, element, last) ? OwnView::added : view;
}

Element as_accepted(const TransactionChanges* changes, const Element& element,
                    const IndexHint& hint) {
  Element result = element;
  if (uses_time(changes->header->parameters) && hint.last != kNoChange)
    result.time = element_at(&changes->log, hint.last).time;
  return result;
}

}  // namespace streamfilter::pg
