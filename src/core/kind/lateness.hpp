// What windows of time do about events that come late.
//
// Time is the clock of what has come, so a key whose first event was late by d is forgotten when
// the clock is a window past that event, though the repeat, as late, comes d after that. Remembered
// for window + lateness, it is found if neither of the two is later than `lateness`; and so are
// repeats that come in time up to `lateness` after the window.
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

// For how long keys are remembered, in the window's unit.
inline std::uint64_t kept_for(const Parameters& p, unsigned window, unsigned lateness) noexcept {
  return p.integer(window) + p.integer(lateness);
}

}  // namespace streamfilter
