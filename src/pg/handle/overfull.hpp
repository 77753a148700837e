// A filter that holds more than its false-positive rate allows: by option overfull, what it takes
// for repeats passes until it is larger, is emptied, or its window has moved on.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Of a filter whose state was just attached: how full it may be.
void set_overfull_limit(FilterHandle* filter);

// Is the repeat to pass, which the filter itself has found? To be asked of repeats only. Cannot
// raise; report_overfull tells of it afterwards, where no lock is held.
bool passes_overfull(FilterHandle* filter, const Element& element);
inline bool passes_repeat(FilterHandle* filter, const Element& element) {
  return !filter->limit.is_none() &&
         unlikely(load_of(filter->header, element.hash) > filter->limit.load) &&
         passes_overfull(filter, element);
}

// A WARNING once per session and filter, a line in the log once a minute and filter.
void tell_overfull(FilterHandle* filter);
inline void report_overfull(FilterHandle* filter) {
  if (unlikely(filter->met_overfull)) tell_overfull(filter);
}

// The two together, where no lock is held.
inline bool lets_pass(FilterHandle* filter, const Element& element) {
  const bool passes = passes_repeat(filter, element);
  report_overfull(filter);
  return passes;
}

}  // namespace streamfilter::pg
