// The default false-positive rate. It is written into a filter's options, so that the filter keeps
// it when the default changes.
#pragma once

#include "pg/server/postgres.hpp"

namespace streamfilter::pg {

// Call for a filter that CREATE has made, or whose fpr ALTER has dropped. A node of a tree takes
// its parent's rate. Raises 22023 if the filter cannot keep the rate and names nothing that
// overrides it; that is a WARNING where a dump may be restored.
void write_default_fpr(Oid relid);

// Call after any other ALTER. Numbers of the kind may have kept CREATE from writing a rate. If they
// no longer do, writes the one that the filter has now: CREATE from a dump would write another.
// Filters on other servers keep their options, because their producers and servers must agree.
void write_unsaid_fpr(Oid relid);

}  // namespace streamfilter::pg
