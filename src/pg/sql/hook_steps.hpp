// What the extension does in each hook of the server.
#pragma once

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

extern const HookSteps kPreloadedSteps;

// Of a library that a session has loaded by itself: it has neither filters nor triggers that work.
extern const HookSteps kSessionSteps;

}  // namespace streamfilter::pg
