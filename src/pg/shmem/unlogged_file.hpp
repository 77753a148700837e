// Unlogged filters over a clean restart.
#pragma once

namespace streamfilter::pg {

// Reads what the last shutdown has written, and sees to it that this one writes. Called by the
// postmaster when shared memory is there.
void start_unlogged_file();

}  // namespace streamfilter::pg
