// The extension's work in each of PostgreSQL's hooks.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

extern const HookSteps kPreloadedSteps;

// For a library that a session has loaded by itself, without working filters and triggers.
extern const HookSteps kSessionSteps;

}  // namespace streamfilter::pg
