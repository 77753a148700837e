// Watching DDL: definitions are checked when they are made, and state goes when its filter goes.
#pragma once

namespace streamfilter::pg {

// Installs the hook that notices DROP. Called by _PG_init when preloaded.
void init_ddl_watch();

}  // namespace streamfilter::pg
