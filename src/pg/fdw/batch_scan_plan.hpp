// Plans the node of batch_scan.hpp.
#pragma once

extern "C" {
#include "nodes/pathnodes.h"
}

#include "pg/server/hooks.hpp"

namespace streamfilter::pg {

// Adds paths to a relation with a condition on a filter.
void add_batch_scans(PathsCall* call);

// Registers the node. Called by _PG_init when preloaded.
void init_batch_scan();

}  // namespace streamfilter::pg
