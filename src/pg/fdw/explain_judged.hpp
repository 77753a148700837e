// EXPLAIN ANALYZE says what filters have made of the rows.
#pragma once

namespace streamfilter::pg {

// Installs the hook. Called by _PG_init when preloaded.
void init_explain_judged();

}  // namespace streamfilter::pg
