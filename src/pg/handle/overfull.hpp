// A filter that holds more keys than its false-positive rate allows. Unless option overfull says
// otherwise, repeats pass until the filter is larger or empty, or its window has moved on.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

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
