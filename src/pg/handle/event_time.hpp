// Events whose time is too far ahead: one of them must not end the window of all others.
#pragma once

#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Counts the event and warns of it, once for a session and a definition; from now on it is one of
// the filter's present, which does not move. Does nothing if its time is not too far ahead.
void check_time(FilterHandle* filter, Element* element);

// To be called for what is going to be inserted, not for what is only looked up.
inline void bound_time(FilterHandle* filter, Element* element) {
  if (unlikely(element->time > filter->latest_time)) check_time(filter, element);
}

}  // namespace streamfilter::pg
