// Unlogged filters over a clean restart.
#pragma once

namespace streamfilter::pg {

// Reads what the last shutdown has written, and registers the writing at this one. Called by the
// postmaster when shared memory exists.
void start_unlogged_file();

}  // namespace streamfilter::pg
