// Handles events whose time is too far ahead, which must not end the window of all others; events
// that come too late to be remembered; and a server clock that goes back, after which new events
// must not count as late.
#pragma once

#include "core/filter/filter.hpp"
#include "pg/handle/filter_handle.hpp"

namespace streamfilter::pg {

// Warns, once a session and filter, if a new key comes too late to be remembered. Call it with no
// lock held.
void warn_of_late(const FilterHandle* filter);
inline void look_for_late(const FilterHandle* filter, const Element& element) {
  if (unlikely(filter->times.used && !filter->times.by_clock) &&
      is_too_late(filter->header, element))
    warn_of_late(filter);
}

// If the event's time is too far ahead, counts it, warns once per session and definition, and
// treats it as an event of the filter's present, which does not move the window. A time by the
// server's clock becomes one by a clock that never goes back; warns if it has. Call it for keys to
// insert, not for look-ups.
void bound_event_time(FilterHandle* filter, Element* element);
inline void bound_time(FilterHandle* filter, Element* element) {
  if (unlikely(filter->times.used)) bound_event_time(filter, element);
}

}  // namespace streamfilter::pg
