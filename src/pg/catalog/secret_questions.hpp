// Functions that ask filters although they are not declared volatile. A filter knows each key as
// soon as the one before is judged, while a table shows a STABLE function the rows from before the
// statement.
#pragma once

namespace streamfilter::pg {

// Is the function one of these, as far as its source shows? Its text names our functions, or its
// parsed body calls volatile ones. Calls through other functions, and filters read as tables,
// remain unseen. False for functions in C and for PostgreSQL's.
bool asks_in_secret(Oid function);

}  // namespace streamfilter::pg
