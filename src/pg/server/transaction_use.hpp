// Whoever preloads the library pays for it where filters are used, and nowhere else.
#pragma once

namespace streamfilter::pg {

// Has the current transaction used a filter, or left anything else for its end to look after? Who
// leaves something says so; the coordinator (pg/commit) takes it back when all is done. Of another
// transaction this is all that its callbacks look at.
extern bool transaction_uses_filters;

}  // namespace streamfilter::pg
