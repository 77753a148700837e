// Functions that are said not to be volatile and ask filters all the same: a filter knows each key
// as soon as the one before it is judged, where a table shows a STABLE function what was there
// before the statement.
#pragma once

namespace streamfilter::pg {

// Is the function such a one, as far as its source tells? Its text names functions of ours; or its
// parsed body calls anything volatile. What other functions ask for it, and filters that
// it reads as tables, stay hidden. False of functions in C and of the server.
bool asks_in_secret(Oid function);

}  // namespace streamfilter::pg
