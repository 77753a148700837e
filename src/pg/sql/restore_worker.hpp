// Restoring filters in the background after a start.
#pragma once

namespace streamfilter::pg {

// By _PG_init of a library that is preloaded.
void init_restore_worker();

}  // namespace streamfilter::pg
