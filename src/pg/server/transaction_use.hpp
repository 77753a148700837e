// Servers that preload the library pay for it only where filters are used.
#pragma once

namespace streamfilter::pg {

// Has the current transaction used a filter, or left anything else for its end to look after? Who
// leaves something says so; the coordinator (pg/commit) takes it back when all is done. Of another
// transaction this is all that its callbacks look at.
extern bool transaction_uses_filters;

}  // namespace streamfilter::pg
