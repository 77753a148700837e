// Restores filters in the background after a start.
#pragma once

namespace streamfilter::pg {

// Called by _PG_init of a preloaded library.
void init_restore_worker();

// PostgreSQL does not start a worker again that has ended, not after a crash either: then the first
// session that uses a filter starts it.
void start_restore_launcher_once();

}  // namespace streamfilter::pg
