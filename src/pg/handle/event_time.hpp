// Events whose time is too far ahead: one of them must not end the window of all others. Events
// that come too late to be remembered. And a
// server's clock that goes back: what comes then must not be too late for a filter that goes by it.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// If the event's time is too far ahead, counts it, warns once per session and definition, and
// treats it as an event of the filter's present, which does not move the window.
void check_time(FilterHandle* filter, Element* element);

// The time of an event by the server's clock, as if the clock had never gone back. Warns if it has.
void follow_clock(FilterHandle* filter, Element* element);

// Of a new key that is about to be remembered: warns, once for a session and a filter, if it comes
// so late that it will not be. Where no lock is held.
void warn_of_late(const FilterHandle* filter);
inline void look_for_late(const FilterHandle* filter, const Element& element) {
  if (unlikely(filter->has_time && !filter->by_clock) && is_too_late(filter->header, element))
    warn_of_late(filter);
}

// To be called for what is going to be inserted, not for what is only looked up.
inline void bound_time(FilterHandle* filter, Element* element) {
  if (unlikely(element->time > filter->latest_time)) check_time(filter, element);
  if (unlikely(filter->by_clock)) follow_clock(filter, element);
}

}  // namespace streamfilter::pg
