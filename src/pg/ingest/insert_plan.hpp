// Which INSERTs are planned with a node that inserts in batches.
#pragma once

namespace streamfilter::pg {

// Registers hook and node. Called by _PG_init when preloaded, after the hook that looks for lost
// rows: that one wants to see the plan as the server makes it.
void init_batch_insert();

}  // namespace streamfilter::pg
