// Does this database have the extension?
#pragma once

namespace streamfilter::pg {

// True also where that cannot be found out now, and from then on in a session that has once found
// it. One comparison, unless a wrapper was made or dropped since the last call.
bool is_extension_here();

}  // namespace streamfilter::pg
