// Events whose time is too far ahead: one of them must not end the window of all others. And a
// server's clock that goes back: what comes then must not be too late for a filter that goes by it.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Counts the event and warns of it, once for a session and a definition; from now on it is one of
// the filter's present, which does not move. Does nothing if its time is not too far ahead.
void check_time(FilterHandle* filter, Element* element);

// The time of an event of a filter by the server's clock: as if that had never gone back. Warns
// where it has.
void follow_clock(FilterHandle* filter, Element* element);

// To be called for what is going to be inserted, not for what is only looked up.
inline void bound_time(FilterHandle* filter, Element* element) {
  if (unlikely(element->time > filter->latest_time)) check_time(filter, element);
  if (unlikely(filter->by_clock)) follow_clock(filter, element);
}

}  // namespace streamfilter::pg
