// COPY … FROM into a table with one of our triggers, in batches.
#pragma once

namespace streamfilter::pg {

// Called by _PG_init when preloaded.
void init_copy_ingest();

}  // namespace streamfilter::pg
