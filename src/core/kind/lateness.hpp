// Windows of time and late events.
//
// A filter's clock is the latest time of any event. If a key's first event is d late, the key is
// forgotten a window after that event's time, although an equally late repeat comes d after that. A
// filter that remembers keys for window + lateness finds such a repeat if neither event is later
// than `lateness`. It also finds repeats that come up to `lateness` after the window.
#pragma once

#include "core/base/status.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

inline bool check_lateness(const Definition& definition, unsigned window, unsigned lateness,
                           Problem& problem) noexcept {
  const Parameters& p = definition.parameters;
  if (!definition.has(lateness)) return true;
  if (definition.has(window) && p.integer(window + 1) == 0 && p.integer(lateness + 1) == 0)
    return true;
  problem.set(Error::conflict, "option lateness needs a window of time");
  return problem.add_hint("It is a time, too: how late an event may come and still be known.");
}

// The time that keys are remembered, in the window's unit.
inline std::uint64_t kept_for(const Parameters& p, unsigned window, unsigned lateness) noexcept {
  return p.integer(window) + p.integer(lateness);
}

}  // namespace streamfilter
