// Lets servers that preload the library pay for it only where filters are used.
#pragma once

namespace streamfilter::pg {

// Has the current transaction used a filter, or anything else that needs work at its end? Set by
// whatever needs it, reset by the coordinator (pg/commit). For other transactions the callbacks
// look at nothing else.
inline bool transaction_uses_filters = false;

}  // namespace streamfilter::pg
