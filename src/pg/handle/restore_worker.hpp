// Restores filters in the background after a start.
#pragma once

namespace streamfilter::pg {

// Called by _PG_init of a preloaded library.
void init_restore_worker();

}  // namespace streamfilter::pg
