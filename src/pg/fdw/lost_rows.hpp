// Plans that throw rows away above `NOT streamfilter_seen(…)`: the filter has remembered them, so
// nobody gets them again. There is a WARNING when such a query is planned.
#pragma once

namespace streamfilter::pg {

// Installs the hooks. Called by _PG_init when preloaded.
void init_lost_rows_watch();

}  // namespace streamfilter::pg
